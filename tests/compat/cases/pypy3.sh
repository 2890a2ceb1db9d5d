# needs: pypy3
# pypy: a tracing JIT
cat >a.py <<'S'
import sys
def work(n):
    s, d = 0, {}
    for i in range(n):
        s = (s * 31 + i) & 0xffffffff
        d[s % 1009] = d.get(s % 1009, 0) + (i if i % 3 else -i)
    return s, sum(d.values())
print(work(2000000))
class A:
    def __init__(self, x): self.x = x
    def f(self, o): return A(self.x + o.x)
a = A(0)
for i in range(300000): a = a.f(A(i % 5))
print(a.x, sum(float(i) ** 0.5 for i in range(100000)) > 1)
def deep(n): return deep(n + 1)
try: deep(0)
except RecursionError: print("deep")
sys.exit(3)
S
$RUN pypy3 a.py; echo "status $?"

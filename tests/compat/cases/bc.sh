# needs: bc
# tags: fast
# bc: arbitrary precision, functions
cat >a.bc <<'S'
define f(n) {
    if (n < 2) return (n)
    return (f(n - 1) + f(n - 2))
}
f(17)
scale = 60
4 * a(1)
2 ^ 300
sqrt(2)
for (i = 0; i < 3000; i++) s += 1 / (i + 1)
s
1 / 0
S
$RUN bc -lq a.bc </dev/null 2>&1

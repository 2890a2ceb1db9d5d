# needs: /usr/bin/python3
# tags: fast
# python3: the standard library at work
cat >a.py <<'S'
import collections, ctypes, decimal, hashlib, io, json, math, os, random, re, sqlite3, struct, subprocess, sys, threading, zlib
random.seed(5); data = [random.random() for _ in range(2000)]
print(round(math.fsum(data), 9), hashlib.sha256(repr(data).encode()).hexdigest()[:16])
d = json.loads(json.dumps({"a": [1, 2, {"b": None}], "t": "\u00e9" * 50})); print(len(d["t"]), d["a"])
print(collections.Counter(re.findall(r"\w", "the quick brown fox" * 20)).most_common(3))
db = sqlite3.connect(":memory:"); db.execute("create table t(a, b)"); db.executemany("insert into t values(?, ?)", [(i, i * i) for i in range(500)])
print(db.execute("select sum(b), max(a) from t where b % 3 = 1").fetchone())
total, lock = [0], threading.Lock()
def work(n):
    for i in range(n):
        with lock: total[0] += i
ts = [threading.Thread(target=work, args=(500,)) for _ in range(8)]; [t.start() for t in ts]; [t.join() for t in ts]; print(total)
print(subprocess.run(["sh", "-c", "echo sub; exit 3"], capture_output=True).returncode)
decimal.getcontext().prec = 50; print(decimal.Decimal(2).sqrt()); print(2 ** 521 % 1000007, zlib.crc32(b"x" * 100000))
libc = ctypes.CDLL(None); print(libc.abs(-5), ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x * 2)(21))
CMP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)); arr = (ctypes.c_int * 6)(5, 2, 9, 1, 7, 3)
libc.qsort(arr, 6, 4, CMP(lambda a, b: a[0] - b[0])); print(list(arr))
def gen():
    for i in range(3): yield i
try: sum(gen(), "x")
except TypeError as e: print(type(e).__name__)
sys.exit(6)
S
$RUN /usr/bin/python3 -S a.py; echo "status $?"

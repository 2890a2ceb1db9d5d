"""Inputs of the benchmarks: generated into a folder, the same bytes every time. Run by bench/run."""

import os, random

SCRIPTS = {
    "work.py": """
import sys
class Node:
    __slots__ = ("key", "left", "right")
    def __init__(self, key): self.key, self.left, self.right = key, None, None
def insert(root, key):
    while True:
        if key < root.key:
            if root.left is None: root.left = Node(key); return
            root = root.left
        else:
            if root.right is None: root.right = Node(key); return
            root = root.right
def depth(n): return 0 if n is None else 1 + max(depth(n.left), depth(n.right))
x, words, total = 1, {}, 0
root = Node(1 << 30)
for i in range(180000):
    x = (x * 1103515245 + 12345) & 0x7fffffff
    insert(root, x)
    w = "w%d" % (x % 997)
    words[w] = words.get(w, 0) + len(w)
    total += sum(divmod(x, 7))
lines = ["%s,%d" % (k, v) for k, v in sorted(words.items())]
text = "\\n".join(lines * 20)
parsed = [l.split(",") for l in text.splitlines()]
primes = [n for n in range(2, 60000) if all(n % d for d in range(2, int(n ** 0.5) + 1))]
print(depth(root), len(parsed), len(primes), total)
""",
    "work.pl": r"""
my ($x, %count, @list) = (1);
for my $i (1 .. 900000) {
    $x = ($x * 1103515245 + 12345) & 0x7fffffff;
    my $w = "w" . ($x % 1009);
    $count{$w} += length $w;
    push @list, $x if $i % 3 == 0;
}
my @sorted = sort { $a <=> $b } @list;
my $text = join " ", map { "$_=$count{$_}" } sort keys %count;
my $n = 0;
for (1 .. 200) { my $t = $text; $n += ($t =~ s/(\w)(\d+)=(\d+)/$1:$3:$2/g); $n += () = $t =~ /:\d*7\d*:/g; }
print scalar(@sorted), " $sorted[777] $n\n";
""",
    "work.lua": """
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local t, s, x = {}, {}, 1
for i = 1, N do
  x = (x * 16807) % 2147483647
  t[x % 5003] = (t[x % 5003] or 0) + i % 7
  if i % 16 == 0 then s[#s + 1] = tostring(x) .. ":" .. i end
end
table.sort(s)
local sum = 0
for k, v in pairs(t) do sum = sum + k * v end
local m = {}
for i = 1, M do m[i] = {}; for j = 1, M do m[i][j] = (i * j) % 17 end end
local tr = 0
for i = 1, M do for j = 1, M do local a = 0; for k = 1, M do a = a + m[i][k] * m[k][j] end; tr = (tr + a) % 1000003 end end
print(fib(F), sum, #s, #table.concat(s, ","), tr)
""",
    "work.awk": """
{ for (i = 1; i <= NF; i++) { count[$i]++; len += length($i) } if ($0 ~ /[aeiou][a-z]*ing$/) hits++; gsub(/th/, "TH"); out += length($0) }
END { for (w in count) if (count[w] > max) { max = count[w]; best = w } print NR, len, hits, out, max }
""",
    "work.sql": """
create table item(id integer primary key, name text, price real, kind integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 150000)
  insert into item select i, 'item ' || (i * 7919 % 150011), (i * 31 % 1000) / 7.0, i % 97 from n;
create index by_kind on item(kind, price);
create index by_name on item(name);
create table sale(item integer, amount integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000)
  insert into sale select i * 37 % 150000 + 1, i % 11 from n;
select kind, count(*), round(sum(price), 3), max(name) from item group by kind order by 3 desc limit 5;
select i.kind, sum(s.amount * i.price) > 1000 from sale s join item i on i.id = s.item group by i.kind order by 1 limit 5;
select count(*) from item a where exists (select 1 from item b where b.name = 'item ' || a.id);
update item set price = price * 1.1 where kind in (3, 5, 7);
delete from sale where amount = 3;
select count(*), sum(length(name)) from item where name like '%99%';
select round(avg(price), 4), (select count(*) from sale) from item;
""",
    "short.sh": """#!/bin/sh
i=0
while [ $i -lt 100 ]; do
    /bin/true
    /bin/echo "line $i" >/dev/null
    /usr/bin/expr $i + 1 >/dev/null
    i=$((i + 1))
done
""",
}


def text(size):
    """Words with a skewed distribution, in lines: compresses about as prose does."""
    rng = random.Random(4711)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = []
    for i in range(6000):
        words.append("".join(letters[min(int(rng.expovariate(0.16)), 25)] for _ in range(rng.randint(2, 11))))
    out, n = [], 0
    while n < size:
        k = rng.randint(5, 14)
        line = " ".join(words[min(int(rng.paretovariate(0.7)) - 1, 5999)] for _ in range(k))
        out.append(line)
        n += len(line) + 1
    return "\n".join(out)[:size - 1] + "\n"


def c_source(functions):
    """A preprocessed C file with structs, loops, switches, floating point, inlining and calls."""
    rng = random.Random(99)
    out = ["typedef unsigned long u64; typedef unsigned int u32;\n",
           "struct rec { u64 key; u32 tag; int n; double w; struct rec *next; char name[16]; };\n",
           "extern void *memcpy(void *, const void *, u64); extern int printf(const char *, ...);\n"]
    for f in range(functions):
        a, b, c = rng.randint(1, 99), rng.randint(1, 63), rng.randint(3, 17)
        cases = "".join(f"        case {rng.randint(0, 40) * 100 + k}: x {rng.choice(['+=', '^=', '-='])} {rng.randint(1, 999)}u * y; "
                        f"{rng.choice(['break;', 'y++; break;', 'goto out;'])}\n" for k in range(rng.randint(3, 14)))
        callee = f"f{rng.randint(max(0, f - 20), f - 1)}(r, x & 7)" if f else "x"
        out.append(f"""
static inline u32 mix{f}(u32 x, u32 y) {{ x ^= y >> {b % 31}; x *= {a * 2 + 1}u; return (x << {c}) | (x >> {32 - c}); }}
u64 f{f}(struct rec *r, int n) {{
    u64 x = r->key, y = {a};
    double acc = {b}.5;
    int table[{c + 4}];
    for (int i = 0; i < {c + 4}; i++) table[i] = i * {a} ^ n;
    for (struct rec *p = r; p && n-- > 0; p = p->next) {{
        switch (p->tag % 5000) {{
{cases}        default: x += mix{f}((u32)x, (u32)y); acc = acc * 1.0{a} + p->w / (double)(n + {c}); table[n % {c}] += p->n;
        }}
        if (p->name[{c % 16}] == '{chr(97 + c)}') memcpy(p->name, &x, {c % 8 + 1});
        else if (acc > {a * 1000}.0 || table[{c % 4}] < {b}) x = {callee};
    }}
out:
    for (int i = 0; i < {c + 4}; i++) x = x * 31 + (u64)table[i];
    return x + (u64)acc + y;
}}
""")
    out.append("int main(void) { struct rec r = {1, 2, 3, 4.0, 0, \"x\"}; u64 s = 0;\n")
    out += [f"    s += f{f}(&r, {f % 7});\n" for f in range(functions)]
    out.append('    printf("%lu\\n", s); return 0; }\n')
    return "".join(out)


def write(path, data):
    mode = "wb" if isinstance(data, bytes) else "w"
    with open(path + ".tmp", mode) as f:
        f.write(data)
    os.rename(path + ".tmp", path)


def tree(path, prose):
    rng = random.Random(7)
    for d in range(60):
        folder = os.path.join(path, f"dir{d % 12}", f"sub{d}")
        os.makedirs(folder, exist_ok=True)
        for f in range(50):
            at = rng.randrange(len(prose) - 40000)
            write(os.path.join(folder, f"file{f}.{'ch'[f % 2]}"), prose[at:at + rng.randint(500, 30000)])


def generate(folder):
    """Everything, once: a stamp with this file's own hash says whether it is current."""
    import hashlib
    with open(__file__, "rb") as f:
        want = hashlib.sha256(f.read()).hexdigest()
    stamp = os.path.join(folder, "stamp")
    if os.path.exists(stamp) and open(stamp).read() == want:
        return
    os.makedirs(folder, exist_ok=True)
    prose = text(12 << 20)
    for name, size in (("text12", 12), ("text4", 4), ("text2", 2)):
        write(os.path.join(folder, name), prose[:size << 20])
    rng = random.Random(5)
    write(os.path.join(folder, "mixed"), prose[:3 << 20].encode() + rng.randbytes(1 << 20) + prose[3 << 20:8 << 20].encode())
    write(os.path.join(folder, "blob"), rng.randbytes(16 << 20))
    write(os.path.join(folder, "big.i"), c_source(36))
    for name, script in SCRIPTS.items():
        write(os.path.join(folder, name), script.lstrip())
    tree(os.path.join(folder, "tree"), prose)
    write(stamp, want)


if __name__ == "__main__":
    import sys
    generate(sys.argv[1])

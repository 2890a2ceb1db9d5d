#!/usr/bin/python3
"""Space of checkpoints against undo logs without consolidation, for three programs, as HARE's Figures 10 and 11.

The programs run natively; bench/checkpoints.c stops each every --interval of its CPU time and puts what changed into a checkpoint
store. Both sides of the comparison save the same blocks of 64 bytes at the same moments: those whose contents changed. An undo
log keeps 72 bytes for each (contents and address), for ever. The store's figure is what its files take on disk, metadata and
free slots included. Prints a table and writes $BUILD/bench/checkpoints.svg."""

import argparse, math, os, random, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(HERE, "..", "build"))
WORK = os.path.join(BUILD, "bench")
SOURCES = ["files.c", "store.c", "write.c", "merge.c", "meta.c", "slots.c"]
TARGETS = {60: 6, 600: 36}
SHOWN = [1, 2, 5, 10, 20, 40, 60, 100, 200, 300, 400, 500, 600]

INTERVAL = 1000  # as `record` has it; the three programs take half an hour

PROGRAMS = {
    # a database whose rows are updated, a quarter of them with each statement
    "sqlite3": ["sqlite3", ":memory:", ".read work.sql"],
    # waves on a grid of 400 x 400 points
    "lua": ["lua5.4", "-e", """
local n = 400
local a, b = {}, {}
for i = 1, n * n do a[i], b[i] = math.random(), 0.0 end
while true do
  for i = n + 1, n * (n - 1) do
    b[i] = (a[i - 1] + a[i + 1] + a[i - n] + a[i + n]) * 0.5 - b[i]
  end
  a, b = b, a
end"""],
    # compression of text without end
    "xz": ["xz", "-1", "-T1", "-c"] + ["big"] * 1000,
}


def build():
    program = os.path.join(WORK, "checkpoints")
    root = os.path.join(HERE, "..")
    sources = [os.path.join(HERE, "checkpoints.c")] + [os.path.join(root, "src", "ckpt", s) for s in SOURCES]
    if not os.path.exists(program) or os.path.getmtime(program) < max(map(os.path.getmtime, sources)):
        subprocess.run(["gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I" + os.path.join(root, "src"), "-o", program, *sources,
                        "-lxxhash"], check=True)
    return program


SQL = """
create table t(id integer primary key, k integer, v text);
create index tk on t(k);
with recursive c(i) as (select 1 union all select i + 1 from c where i < 20000)
  insert into t select i, i * 7919 % 20011, hex(randomblob(60)) from c;
"""
UPDATE = "update t set v = hex(randomblob(60)), k = k + 1 where id % 4 = abs(random()) % 4;\n"


def make_input(folder):
    """Text that xz has to work for, words of a small language, 16 MB; and statements that go on for a minute."""
    random.seed(7)
    words = ["".join(random.choices("etaoinshrdlu", k=random.randint(2, 9))) for _ in range(20000)]
    with open(os.path.join(folder, "big"), "w") as f:
        for _ in range(16):
            f.write(" ".join(random.choices(words, k=170000)) + "\n")
    with open(os.path.join(folder, "work.sql"), "w") as f:
        f.write(SQL + UPDATE * 100000)


def measure(driver, name, n, interval, folder):
    dir = tempfile.mkdtemp(dir=WORK)
    try:
        p = subprocess.run([driver, str(n), str(interval), dir, "--", *PROGRAMS[name]], cwd=folder, stdout=subprocess.PIPE, text=True,
                           stdin=subprocess.DEVNULL)
    finally:
        shutil.rmtree(dir)
    return [tuple(map(int, line.split())) for line in p.stdout.splitlines()]


def size(n):
    return f"{n / 1e6:.1f} MB" if n < 1e9 else f"{n / 1e9:.2f} GB"


def table(name, interval, rows):
    print(f"{name}: a checkpoint every {interval} ms of CPU time, {rows[-1][4] * 4096 / 1e6:.0f} MB of private memory")
    print(f"{'taken':>7}{'left':>6}{'store':>12}{'undo log':>12}{'ratio':>8}")
    for taken, left, store, undo, _ in rows:
        if taken in SHOWN:
            goal = f"   (target {TARGETS[taken]})" if taken in TARGETS else ""
            print(f"{taken:>7}{left:>6}{size(store):>12}{size(undo):>12}{undo / store:>8.1f}{goal}")
    growth(rows)
    print(flush=True)


def growth(rows):
    """How the store grew from 75 to 600 checkpoints, against the undo log: eight times as many, three doublings."""
    at = {r[0]: r for r in rows}
    if 75 in at and 600 in at:
        store, undo = at[600][2] / at[75][2], at[600][3] / at[75][3]
        print(f"from 75 to 600 checkpoints: store x {store:.2f}, undo log x {undo:.2f}")


def svg(results, path):
    """One panel a program: megabytes over checkpoints; the store again, enlarged, with a logarithmic axis below it."""
    w, h, pad = 420, 260, 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{w * len(results)}" height="{2 * h}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']

    def panel(x0, y0, title, series, log):
        most = max(v for _, points in series for _, v in points) or 1
        last = max(n for _, points in series for n, _ in points)
        fx = (lambda n: math.log(n) / math.log(last)) if log else (lambda n: n / last)
        out.append(f'<text x="{x0 + pad}" y="{y0 + 18}">{title}</text>')
        out.append(f'<path d="M{x0 + pad} {y0 + 30}V{y0 + h - 40}H{x0 + w - 20}" fill="none" stroke="black"/>')
        out.append(f'<text x="{x0 + 4}" y="{y0 + 40}">{size(most)}</text>')
        for n in (1, 10, 100, 600) if log else (0, 200, 400, 600):
            if n <= last:
                x = x0 + pad + fx(n) * (w - pad - 20) if n else x0 + pad
                out.append(f'<text x="{x - 8:.0f}" y="{y0 + h - 22}">{n}</text>')
        for color, points in series:
            d = " ".join(f"{x0 + pad + fx(n) * (w - pad - 20):.1f},{y0 + h - 40 - v / most * (h - 75):.1f}" for n, v in points)
            out.append(f'<polyline points="{d}" fill="none" stroke="{color}" stroke-width="1.5"/>')

    for i, (name, rows) in enumerate(results.items()):
        store, undo = [(r[0], r[2]) for r in rows], [(r[0], r[3]) for r in rows]
        panel(i * w, 0, f"{name}: undo log (red), consolidated (blue)", [("#c00", undo), ("#06c", store)], False)
        panel(i * w, h, f"{name}: consolidated, logarithmic axis", [("#06c", store)], True)
    out.append("</svg>")
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-n", type=int, default=600, help="checkpoints (600)")
    p.add_argument("--interval", type=int, default=INTERVAL, help=f"milliseconds of CPU time ({INTERVAL})")
    p.add_argument("programs", nargs="*", help=", ".join(PROGRAMS))
    options = p.parse_args()
    os.makedirs(WORK, exist_ok=True)
    driver = build()
    folder = tempfile.mkdtemp(dir=WORK)
    results, missed = {}, []
    try:
        make_input(folder)
        for name in options.programs or PROGRAMS:
            rows = measure(driver, name, options.n, options.interval, folder)
            if not rows:
                print(f"{name}: no checkpoints")
                continue
            results[name] = rows
            table(name, options.interval, rows)
            missed += [f"{name} after {r[0]}" for r in rows if r[0] in TARGETS and r[3] / r[2] < TARGETS[r[0]]]
    finally:
        shutil.rmtree(folder)
    if results:
        path = os.path.join(WORK, "checkpoints.svg")
        svg(results, path)
        print("curves:", path)
    print("missed: " + ", ".join(missed) if missed else "all targets met")


if __name__ == "__main__":
    main()

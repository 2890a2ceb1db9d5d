"""Benchmarks of `reprise record` and `reprise replay -a`, as ratios to native. Part of bench/run: `bench/run -k rec:`."""

import json, os, shutil, subprocess, tempfile, time


class Recordings:
    """A folder for recordings of one measurement."""

    def __init__(self, work):
        self.folder = tempfile.mkdtemp(dir=work)

    def env(self, base):
        return dict(base, REPRISE_DIR=self.folder)

    def forget(self):
        for name in os.listdir(self.folder):
            if name != "store":
                path = os.path.join(self.folder, name)
                os.remove(path) if os.path.islink(path) or os.path.isfile(path) else shutil.rmtree(path, ignore_errors=True)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def programs(b, options, note):
    """The compute set: wall and CPU of recording (controller included), wall and CPU of replay."""
    chosen = [(n, b.resolve(c)) for n, c in b.workloads() if options.wants("rec:" + n)]
    if not chosen:
        return
    print(f"{'recording':14}{'native s':>9}{'wall':>8}{'cpu':>8}   replay{'wall':>7}{'cpu':>8}   log")
    walls, replays = [], []
    for name, command in chosen:
        if not os.path.exists(command[0]):
            continue
        r = Recordings(b.WORK)
        native, record, replay, size = b.Result(), b.Result(), b.Result(), 0
        for _ in range(options.n):
            native.add(command)
            r.forget()
            record.add([b.REPRISE, "record", "--"] + command, env=r.env(b.ENV))
            replay.add([b.REPRISE, "replay", "-a"], env=r.env(b.ENV))
            log = os.path.join(r.folder, "latest", "log")
            size = os.path.getsize(log) if os.path.exists(log) else 0
        r.close()
        error = native.error or record.error or replay.error
        if not error and not native.output == record.output == replay.output:
            error = "other output than natively"
        if error:
            print(f"{name:14}{error}")
            note("recording", name, {"error": error})
            continue
        row = {"native": native.wall, "record_wall": record.wall / native.wall, "record_cpu": record.cpu / native.cpu,
               "replay_wall": replay.wall / native.wall, "replay_cpu": replay.cpu / native.cpu, "log_bytes": size}
        walls.append(row["record_wall"])
        replays.append(row["replay_wall"])
        print(f"{name:14}{native.wall:9.2f}{row['record_wall']:8.2f}{row['record_cpu']:8.2f}{'':9}{row['replay_wall']:7.2f}"
              f"{row['replay_cpu']:8.2f}   {size / 1024:.0f} KB", flush=True)
        note("recording", name, row)
    print(f"{'geometric mean':14}{'':9}{b.geometric_mean(walls):8.2f}   (target 1.45){'':4}{b.geometric_mean(replays):7.2f}   (target 1.35; dd-512 "
          f"recording at most 2.5)\n", flush=True)
    note("recording", "geometric mean", {"record_wall": b.geometric_mean(walls), "replay_wall": b.geometric_mean(replays)})


PROJECT_FILES = 60


def make_project(folder):
    for i in range(PROJECT_FILES):
        with open(os.path.join(folder, f"f{i}.c"), "w") as f:
            f.write(f"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
static int compare(const void *a, const void *b) {{ return *(const int *)a - *(const int *)b; }}
int work{i}(int n) {{
    int *v = malloc(sizeof *v * (size_t)n), s = 0;
    char text[64];
    for (int i = 0; i < n; i++) v[i] = (i * 7919 + {i}) % 1000;
    qsort(v, (size_t)n, sizeof *v, compare);
    for (int i = 0; i < n; i++) s += v[i] * (i % {i + 1});
    snprintf(text, sizeof text, "%d", s);
    free(v);
    return s + (int)strlen(text);
}}
double more{i}(double x) {{ for (int i = 0; i < 100; i++) x = sin(x) + cos(x * {i}); return x; }}
""")
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write("".join(f"int work{i}(int);\n" for i in range(PROJECT_FILES)) + "int main(void) { return ("
                + " + ".join(f"work{i}(100)" for i in range(PROJECT_FILES)) + ") == 7; }\n")
    with open(os.path.join(folder, "Makefile"), "w") as f:
        f.write("OBJ := $(patsubst %.c,%.o,$(wildcard *.c))\nprog: $(OBJ)\n\tgcc -o $@ $^ -lm\n%.o: %.c\n\tgcc -O2 -g -c -o $@ $<\n")


def timed(command, **kw):
    begin = time.monotonic()
    p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **kw)
    return time.monotonic() - begin, p


def make(b, options, note):
    if not options.wants("rec:make"):
        return
    r = Recordings(b.WORK)
    native, record, replay = [], [], []
    with tempfile.TemporaryDirectory(dir=b.WORK) as folder:
        make_project(folder)
        for _ in range(options.n):
            for list_, prefix in ((native, []), (record, [b.REPRISE, "record", "--"])):
                for name in os.listdir(folder):
                    if name.endswith(".o") or name == "prog":
                        os.remove(os.path.join(folder, name))
                r.forget()
                seconds, p = timed(prefix + ["make", "-j2"], cwd=folder, env=r.env(b.ENV))
                list_.append(seconds)
            replay.append(timed([b.REPRISE, "replay", "-a"], env=r.env(b.ENV))[0])
    r.close()
    ratio = min(record) / min(native)
    print(f"make -j2, {PROJECT_FILES} files: {min(native):.2f} s natively, recording {ratio:.2f} (target 1.7), replay {min(replay) / min(native):.2f}",
          flush=True)
    note("recording", "make", {"native": min(native), "record": ratio, "replay": min(replay) / min(native)})


def at_once(b, n, prefix, command, env):
    """Wall and CPU of n runs at the same time."""
    before, begin = os.times(), time.monotonic()
    quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for p in [subprocess.Popen(prefix + command, cwd=b.INPUT, env=env, **quiet) for _ in range(n)]:
        p.wait()
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - begin, cpu


def two_spheres(b, options, note):
    """Two recordings at the same time: do they slow each other more than two native runs do?"""
    if not options.wants("rec:two spheres"):
        return
    r = Recordings(b.WORK)
    command = b.resolve(["xz", "-6", "-T1", "-c", "text2"])
    best = {}
    for _ in range(options.n):
        for what, prefix in (("native", []), ("record", [b.REPRISE, "record", "--"])):
            for n in (1, 2):
                r.forget()
                got = at_once(b, n, prefix, command, r.env(b.ENV))
                best[what, n] = [min(x) for x in zip(got, best.get((what, n), got))]
    r.close()
    wall, cpu = ((best["record", 2][i] / best["record", 1][i]) / (best["native", 2][i] / best["native", 1][i]) for i in (0, 1))
    print(f"two recordings at once, against one: {best['record', 2][0] / best['record', 1][0]:.2f} in time, natively "
          f"{best['native', 2][0] / best['native', 1][0]:.2f}: {wall:.2f} times that, {cpu:.2f} in CPU (target 1.10)", flush=True)
    note("recording", "two spheres", {"wall": wall, "cpu": cpu})


def threads(b, options, note):
    """Compressors with threads, against themselves on one processor."""
    for name, command in (("xz -T2", ["xz", "-T2", "-6", "--block-size=2MiB", "-c", "text12"]), ("pigz", ["pigz", "-p2", "-9c", "text12"])):
        if not options.wants("rec:" + name) or not shutil.which(command[0]):
            continue
        r = Recordings(b.WORK)
        one, record = b.Result(), b.Result()
        for _ in range(options.n):
            one.add(["taskset", "-c", "0"] + command)
            r.forget()
            record.add([b.REPRISE, "record", "--"] + command, env=r.env(b.ENV))
        r.close()
        print(f"{name:10}{one.wall:6.2f} s on one processor, recording {record.wall / one.wall:.2f} (target 1.6) {record.error or ''}", flush=True)
        note("recording", name, {"one": one.wall, "record": record.wall / one.wall, "error": record.error})


def servers(b, options, note):
    for name, measure in (("redis", b.redis_throughput), ("nginx", lambda p, o: b.nginx_throughput(p, o, 2))):
        if not options.wants("rec:" + name) or not b.server_is_installed(name):
            continue
        r = Recordings(b.WORK)
        native, ours = [], []
        for i in range(options.n):
            native.append(measure([], options))
            ours.append(measure([b.REPRISE, "record", "-o", os.path.join(r.folder, f"r{i}"), "--"], options))
        r.close()
        if not all(native + ours):
            print(f"{name}: no answer in some run")
            note("recording", name, {"error": "no answer"})
            continue
        percent = 100 * max(ours) / max(native)
        print(f"{name:8}{max(native):9.0f} requests/s natively, {percent:.0f} % while recording   (target 60 %)", flush=True)
        note("recording", name, {"native": max(native), "percent": percent})


def idle_and_size(b, options, note):
    if options.wants("rec:sleep"):
        r = Recordings(b.WORK)
        timed([b.REPRISE, "record", "--", "sleep", "10"], env=r.env(b.ENV))
        seconds = min(timed([b.REPRISE, "replay", "-a"], env=r.env(b.ENV))[0] for _ in range(3))
        r.close()
        print(f"sleep 10 replays in {seconds * 1000:.0f} ms   (target 100)", flush=True)
        note("recording", "sleep", {"seconds": seconds})
    if options.wants("rec:size"):
        r = Recordings(b.WORK)
        command = b.resolve(["pigz", "-p2", "-9c", "text12"])
        timed([b.REPRISE, "record", "--"] + command, cwd=b.INPUT, env=r.env(b.ENV))
        timed([b.REPRISE, "replay", "-a", "--count"], env=r.env(b.ENV))
        text = subprocess.run([b.REPRISE, "info"], capture_output=True, text=True, env=r.env(b.ENV)).stdout
        r.close()
        print("log of pigz -p2:\n" + "\n".join("  " + l for l in text.splitlines() if "kilo" in l or l.startswith("instructions")), flush=True)
        note("recording", "size", {"text": text})


def run(b, options, note):
    for part in (programs, make, two_spheres, threads, servers, idle_and_size):
        part(b, options, note)

#!/usr/bin/python3
"""Checkpoints while recording, and what they buy: cost, the way to the end, steps back, reverse-continue.

bench/longrun.c computes for --seconds on --memory MB and writes --rate MB/s. Prints

  cost      CPU time of recording with default checkpoints against --checkpoint-interval none, interleaved, minima
  end       until `replay -e` shows gdb's prompt, less what gdb itself takes on the program and a core-less start
  back      reverse-stepi at the end: the first one, median and worst
  continue  reverse-continue over the whole run, against continue with the same: a watchpoint that is never hit, and a thousand
  hits      reverse-continue to the last hits of a watchpoint, one after the other, against continue to the first ones

Times are elapsed ones except for the cost, so they mean something on a quiet machine only."""

import argparse, os, re, resource, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(HERE, "..", "build"))
REPRISE = os.environ.get("REPRISE") or os.path.join(BUILD, "reprise")


def build(work):
    program = os.path.join(work, "longrun")
    subprocess.run(["gcc", "-O1", "-g", "-no-pie", "-o", program, os.path.join(HERE, "longrun.c")], check=True)
    return program


def cpu(command, env):
    """CPU seconds of a command and its children, and elapsed ones."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - began


def record(o, env, name, rounds, *options):
    shutil.rmtree(os.path.join(env["REPRISE_DIR"], name), ignore_errors=True)
    command = [REPRISE, "record", "-o", os.path.join(env["REPRISE_DIR"], name), *options, "--", o.program, str(rounds), str(o.memory), str(o.rate)]
    return cpu(command, env)


def cost(o, env):
    """The program's CPU time counts, and the controller's: both were paid for."""
    rounds = int(o.cost_seconds * 1000)
    sides = {"none": ["--checkpoint-interval", "none"], "default": []}
    least = {}
    for _ in range(o.repeat):
        for name, options in sides.items():
            used, _ = record(o, env, "cost-" + name, rounds, *options)
            least[name] = min(least.get(name, used), used)
    print(f"cost      {least['none']:.2f} s CPU without, {least['default']:.2f} s with: {100 * (least['default'] / least['none'] - 1):+.1f} %"
          f"   ({info(env, 'cost-default')})")


def info(env, name):
    text = subprocess.run([REPRISE, "info", name], env=env, capture_output=True, text=True).stdout
    found = re.search(r"^checkpoints +(.*)$", text, re.M)
    return found.group(1) if found else "no checkpoints"


def walk(env, name, commands):
    """Milliseconds and reason of each timed command."""
    text = subprocess.run([REPRISE, "walk", name], env=env, input="\n".join(commands) + "\n", capture_output=True, text=True).stdout
    return [(float(ms), why) for ms, why in re.findall(r"^([0-9.]+) ms: (\S+)", text, re.M)]


def prompt(o, env):
    began = time.monotonic()
    subprocess.run([REPRISE, "replay", "-e", "-q", "long", "--", "-batch", "-ex", "info registers rip"], env=env, capture_output=True)
    ours = time.monotonic() - began
    began = time.monotonic()
    subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", "info line main", o.program], capture_output=True)
    own = time.monotonic() - began
    print(f"end       replay -e {ours:.2f} s, gdb alone {own:.2f} s: {ours - own:.2f} s more (target 1)")


def back(env):
    times = [ms for ms, _ in walk(env, "long", ["time-end"] + ["time-back"] * 60)]
    if len(times) < 3:
        print("back      failed")
        return
    steps = sorted(times[1:])
    print(f"end       {times[0]:.0f} ms to the end in the timeline; back: first {times[1]:.0f} ms, median {steps[len(steps) // 2]:.1f} ms, "
          f"worst {steps[-1]:.0f} ms (targets 50, 200)")


def address(o, name):
    out = subprocess.run(["nm", o.program], capture_output=True, text=True).stdout
    return int(re.search(rf"^([0-9a-f]+) \w {name}$", out, re.M).group(1), 16)


def whole(o, env, places):
    """Out of the signal at the end the first time; the begin is a stop, too."""
    unused = address(o, "unused")
    watches = [f"watch {unused + 8 * i} 8" for i in range(places)]
    forward = walk(env, "long", watches + ["time-cont"])
    backward = walk(env, "long", ["end"] + watches + ["time-rcont"])
    if not forward or not backward:
        print("continue  failed")
        return
    print(f"continue  {places} watched: forward {forward[0][0] / 1e3:.2f} s ({forward[0][1]}), reverse {backward[0][0] / 1e3:.2f} s "
          f"({backward[0][1]}): {backward[0][0] / forward[0][0]:.2f} times (target 2)")


def hits(o, env, n):
    """The first one is far away in both directions, so it is told apart."""
    watch = f"watch {address(o, 'sum')} 8"
    forward = walk(env, "long", [watch] + ["time-cont"] * (n + 1))
    backward = walk(env, "long", ["end", watch] + ["time-rcont"] * (n + 1))
    if len(forward) <= n or len(backward) <= n:
        print("hits      failed")
        return
    there, back = (sum(ms for ms, _ in side[1:]) / n for side in (forward, backward))
    print(f"hits      {n} of a watchpoint: forward {there:.1f} ms each, reverse {back:.1f} ms each; the first one in reverse "
          f"{backward[0][0] / 1e3:.2f} s")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=float, default=60, help="of compute in the long recording")
    p.add_argument("--cost-seconds", type=float, default=10)
    p.add_argument("--memory", type=int, default=200, help="MB")
    p.add_argument("--rate", type=int, default=50, help="MB/s")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--only", choices=["cost", "long"])
    o = p.parse_args()
    os.makedirs(os.path.join(BUILD, "bench"), exist_ok=True)
    work = tempfile.mkdtemp(dir=os.path.join(BUILD, "bench"))
    env = dict(os.environ, REPRISE_DIR=work)
    try:
        o.program = build(work)
        if o.only != "long":
            cost(o, env)
        if o.only != "cost":
            used, elapsed = record(o, env, "long", int(o.seconds * 1000))
            print(f"long      recorded {used:.1f} s of CPU in {elapsed:.1f} s; {info(env, 'long')}")
            prompt(o, env)
            back(env)
            whole(o, env, 1)
            whole(o, env, 1000)
            hits(o, env, 60)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""A random walk through gdb itself: steps, lines, stops and places, forwards and backwards. Wherever it comes to a position again,
gdb must show the same registers, stack and threads, and memory must be the same as at the first visit.

    random_walk.py [--moves N] [--seed N] [PROGRAM...]      default: 150 moves; a whole one has 10000"""

import argparse, os, random, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.setdefault("BUILD", os.path.join(HERE, "..", "..", "build"))
sys.path.insert(0, HERE)
from driver import REPRISE, Gdb, Wrong

# PROGRAM: what to stop for
PROGRAMS = {
    "steps": ["break insert", "watch counter"],
    "threads": ["break take_turn", "watch rounds"],
    "cancel": ["break on_usr1", "break clean", "watch cleaned", "handle SIG32 stop print"],
    "signals": ["break on_usr1", "watch faults", "handle SIGALRM nostop noprint"],
}
REGISTERS = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags fs_base".split()
# how often: moves, each as often as it is repeated at most
MOVES = [(22, "stepi", 20), (22, "reverse-stepi", 20), (3, "stepi 40", 2), (3, "reverse-stepi 40", 2), (6, "step", 4), (6, "reverse-step", 4), (5, "next", 4), (5, "reverse-next", 4),
         (8, "continue", 3), (8, "reverse-continue", 3), (12, "seek", 1), (1, "seek begin", 1), (1, "seek end", 1), (2, "finish", 1),
         (2, "reverse-finish", 1)]
FAILURES = ("replay failed", "Remote ", "emote failure", "internal-error", "E01")


class Walk:
    def __init__(self, gdb, seed):
        self.gdb, self.random = gdb, random.Random(seed)
        self.visits, self.places, self.compared = {}, [], 0
        self.at = self.begin = gdb.where().position

    def look(self):
        """Position, and everything that gdb shows there."""
        show = "printf \"" + "%lx " * len(REGISTERS) + "\\n\", " + ", ".join("$" + r for r in REGISTERS)
        said = self.gdb.do("when", "monitor hash", show, "x/8xg $rsp", "x/2i $pc",
                           "thread apply all -q printf \"%lx %lx\\n\", $pc, $sp") # frames may be those of inlined functions, as one steps
        first, _, rest = said.partition("\n")
        return first.strip(), "\n".join(sorted(rest.splitlines())) # threads that come again get other numbers

    def move(self, what):
        command = what
        if self.at < self.begin and what in ("step", "next", "finish"): # gdb goes through the dynamic linker step by step
            command = "stepi"
        if what == "seek":
            command = "seek " + self.random.choice(self.places) if self.places else "stepi"
        said = self.gdb.do(command)
        if any(f in said for f in FAILURES):
            self.gdb.fail(f"{command}: {said}")
        return command, said

    def check(self, command, said):
        at, state = self.look()
        if not at.startswith("Position "):
            self.gdb.fail(f"no position after {command}: {at}")
        if "SIG" in said or "exits here" in said or "killed here" in said:
            return # in front of a signal, which is the same position but not the same moment
        was = self.visits.setdefault(at, (command, state))
        if was[1] != state:
            self.gdb.fail(f"{at}: reached by {command}, not as it was when reached by {was[0]}\n-- was\n{was[1]}\n-- is\n{state}")
        if was[0] is not command:
            self.compared += 1
        place = at.split()[1].rstrip(",")
        self.at = (0, *map(int, place.split(":")))
        if place not in self.places[-50:]:
            self.places.append(place)

    def run(self, moves):
        n = 0
        while n < moves:
            _, what, most = self.random.choices(MOVES, [m[0] for m in MOVES])[0]
            for _ in range(self.random.randint(1, most)):
                self.check(*self.move(what))
                n += 1


def record(line):
    path = os.path.join(os.getcwd(), "rec-" + line)
    subprocess.run(["timeout", "-k", "2", "60", REPRISE, "record", "-o", path, "--", os.path.join(BUILD, "gdb", line)], stdin=subprocess.DEVNULL,
                   capture_output=True)
    return path


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--moves", type=int, default=150)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("programs", nargs="*", default=list(PROGRAMS))
    o = p.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for program in o.programs:
            began = time.monotonic()
            with Gdb(record(program), timeout=300) as gdb:
                gdb.do("break main", "continue", "delete", *PROGRAMS[program])
                walk = Walk(gdb, o.seed)
                try:
                    walk.run(o.moves)
                    print(f"ok {program}: {o.moves} moves, {len(walk.visits)} places, {walk.compared} compared, "
                          f"{time.monotonic() - began:.0f} s", flush=True)
                except Wrong as e:
                    good = False
                    print(f"FAILED {program}, seed {o.seed}: {e}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

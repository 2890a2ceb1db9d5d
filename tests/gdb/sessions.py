#!/usr/bin/python3
"""Sessions of gdb on real recordings. What stops on the way there must stop on the way back, at the same places, with the same
values, in the opposite order: rows of MIRRORS say which commands. Everything else is a function in special.py.

    sessions.py [--all] [-j N] [NAME...]      default: the quick ones; GDB_SESSIONS=all is --all"""

import argparse, concurrent.futures, os, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.setdefault("BUILD", os.path.join(HERE, "..", "..", "build"))
sys.path.insert(0, HERE)
from driver import REPRISE, Gdb, Wrong
import special, sharing

BEGIN_OR_END = "No more reverse-execution history"
MOST_STOPS = 400

# NAME  PROGRAM [ARGS] [&N]  KIND  SETUP  THERE  BACK  VALUES [TIMES]
# KIND: stops   THERE until the end of the recording, then BACK until its begin: the same stops
#       watch   the same; forwards behind the write, backwards in front of it, which is one step apart
#       steps   THERE `TIMES` times, then BACK as often: the same places
# &N: its Nth process, from 1 on, as `reprise ps` lists them.
MIRRORS = [
    ("break", "steps", "stops", ["break add", "break insert"], "continue", "reverse-continue", ["counter", "$rdi"]),
    ("break_line", "steps", "stops", ["break steps.c:54", "break steps.c:57"], "continue", "reverse-continue", ["counter"]),
    ("break_static", "steps_static", "stops", ["break add", "break depth"], "continue", "reverse-continue", ["counter", "$rsp"]),
    ("break_nopie", "steps_nopie", "stops", ["break depth"], "continue", "reverse-continue", ["$rsp"]),
    ("break_optimized", "steps_o2", "stops", ["break total", "break calloc"], "continue", "reverse-continue", ["$rdi"]),
    ("break_stripped", "steps_stripped", "stops", ["break calloc", "break puts", "break fflush"], "continue", "reverse-continue", ["$rdi"]),
    ("break_static_pie", "steps_static_pie", "stops", ["break insert"], "continue", "reverse-continue", ["counter"]),
    ("fork_advice", "advice", "stops", ["break look", "break printf"], "continue", "reverse-continue", ["kept[0]", "wiped[0]", "shared[0]"]),
    ("condition", "steps", "stops", ["break insert if key == 20 || key == 40"], "continue", "reverse-continue", ["key", "counter"]),
    ("condition_register", "steps_stripped", "stops", ["break calloc if $rsi == 24"], "continue", "reverse-continue", ["$rdi", "$rsi"]),
    ("hbreak", "steps", "stops", ["hbreak depth", "hbreak total"], "continue", "reverse-continue", ["$rsp"]),
    ("watch", "steps", "watch", ["watch counter"], "continue", "reverse-continue", ["counter"]),
    ("watch_range", "steps", "watch", ["watch table"], "continue", "reverse-continue", ["table"]),
    ("watch_memcpy", "steps", "watch", ["watch text"], "continue", "reverse-continue", ["text"]),
    ("watch_static", "steps_static", "watch", ["watch first"], "continue", "reverse-continue", ["first"]),
    ("watch_stripped", "steps_stripped_nopie", "watch", ["watch *(int*)@counter"], "continue", "reverse-continue", ["*(int*)@counter"]),
    ("watch_threads", "threads", "watch", ["watch rounds"], "continue", "reverse-continue", ["rounds", "turn"]),
    ("watch_mapping", "unmaps", "watch", ["watch *(char *)0x200000000"], "continue", "reverse-continue", ["*(char *)0x200000000"]),
    ("watch_condition", "threads", "watch", ["watch rounds if turn % 2 == 1"], "continue", "reverse-continue", ["turn % 2"]),
    ("watch_signals", "signals", "watch", ["handle all nostop noprint pass", "watch handled", "watch faults"], "continue", "reverse-continue", ["handled + faults"]),
    ("stepi", "steps", "steps", ["break main", "continue"], "stepi", "reverse-stepi", ["$rsp", "$rax", "$eflags"], 150),
    ("stepi_library", "steps_stripped", "steps", ["break fflush", "continue"], "stepi", "reverse-stepi", ["$rsp", "$rax", "$xmm0.v2_int64"], 150),
    ("stepi_signals", "signals", "steps", ["handle all nostop noprint pass", "break fault", "continue"], "stepi", "reverse-stepi", ["$rsp", "faults"], 150),
    ("stepi_threads", "threads", "steps", ["break take_turn", "continue"], "stepi", "reverse-stepi", ["$rsp", "turn"], 150),
    ("nexti", "steps", "steps", ["break main", "continue"], "nexti", "reverse-nexti", ["$rsp", "counter"], 30),
    ("step", "steps", "steps", ["break main", "continue"], "step", "reverse-step", ["counter"], 12),
    ("next", "steps", "steps", ["break main", "continue"], "next", "reverse-next", ["counter"], 5),
    ("next_cxx", "throws", "steps", ["break attempt", "continue"], "next", "reverse-next", ["caught"], 1),
    ("next_threads", "threads", "steps", ["break take_turn if me == 2", "continue", "delete"], "next", "reverse-next", ["turn"], 1),
    ("break_threads", "threads", "stops", ["break take_turn"], "continue", "reverse-continue", ["me", "turn", "own"]),
    ("break_thread_one", "threads", "stops", ["break take_turn if me == 3"], "continue", "reverse-continue", ["me", "turn"]),
    ("break_cxx", "throws", "stops", ["break Square::area", "break largest<int>"], "continue", "reverse-continue", ["destroyed", "caught"]),
    ("catch_throw", "throws", "stops", ["catch throw", "catch catch"], "continue", "reverse-continue", ["destroyed", "caught"]),
    ("break_handlers", "signals", "stops", ["handle all nostop noprint pass", "break on_usr1", "break on_usr2", "break on_segv", "break on_alarm"],
     "continue", "reverse-continue", ["handled", "faults", "alarms"]),
    ("signals", "signals", "stops", ["handle SIGALRM stop print"], "continue", "reverse-continue", ["handled", "faults", "alarms", "$_siginfo.si_signo"]),
    ("signals_in_calls", "cancel", "stops", ["handle SIG32 stop print", "break clean"], "continue", "reverse-continue", ["handled", "cleaned", "$_siginfo.si_signo"]),
    ("stepi_into_handlers", "cancel", "steps", ["handle all nostop noprint pass", "break on_usr1", "continue", "delete", "reverse-stepi 8"],
     "stepi", "reverse-stepi", ["$rsp", "handled"], 16),
    ("catch_signals_in_calls", "cancel", "stops", ["catch syscall futex", "break clean"], "continue", "reverse-continue", ["handled", "cleaned"]),
    ("signals_some", "signals", "stops", ["handle all nostop noprint pass", "handle SIGUSR2 stop print", "break fault"], "continue", "reverse-continue", ["handled", "faults"]),
    ("crash", "signals crash", "stops", ["handle all nostop noprint pass", "handle SIGSEGV stop", "break die"], "continue", "reverse-continue", ["faults"]),
    ("abort", "signals abort", "stops", ["break die", "break raise"], "continue", "reverse-continue", ["handled"]),
    ("killed", "signals kill", "stops", ["handle all nostop noprint pass", "break die"], "continue", "reverse-continue", ["handled"]),
    ("fault_and_end", "signals leave", "stops", ["handle all nostop noprint pass", "handle SIGSEGV stop", "break leave", "catch syscall exit_group"],
     "continue", "reverse-continue", ["last"]),
    ("stepi_fault_and_end", "signals leave", "steps", ["handle all nostop noprint pass", "break leave", "continue", "delete"], "stepi", "reverse-stepi",
     ["last", "$rsp"], 40),
    ("break_at_fault", "signals", "stops", ["handle SIGALRM nostop noprint", "break signals.c:43 if faults > 0"], "continue", "reverse-continue", ["faults"]),
    ("break_programs", "family", "stops", ["break before_exec", "break after_exec"], "continue", "reverse-continue", ["stage", "n"]),
    ("watch_programs", "family", "watch", ["watch stage"], "continue", "reverse-continue", ["stage"]),
    ("catch_syscall", "steps", "stops", ["catch syscall"], "continue", "reverse-continue", ["$rdi"]),
    ("catch_syscall_some", "steps_static", "stops", ["catch syscall write brk", "break insert if key == 20"], "continue", "reverse-continue", ["$rip", "$rdi"]),
    ("catch_syscall_threads", "threads", "stops", ["catch syscall futex clone3 madvise"], "continue", "reverse-continue", ["$rip", "turn"]),
    ("catch_syscall_programs", "family", "stops", ["catch syscall execve exit_group", "break before_exec"], "continue", "reverse-continue", ["$rsp"]),
    ("catch_syscall_checkpoints", "naps", "stops", ["catch syscall rt_sigaction clock_nanosleep exit_group"], "continue", "reverse-continue", ["$rsp"]),
    ("catch_fork", "family", "stops", ["catch fork", "break before_exec"], "continue", "reverse-continue", ["$rip"]),
    ("catch_fork_and_call", "family", "stops", ["catch fork", "catch syscall clone"], "continue", "reverse-continue", ["$rip", "$_thread"]),
    ("catch_signal", "signals", "stops", ["handle all nostop noprint pass", "catch signal SIGUSR1"], "continue", "reverse-continue", ["handled"]),
]
SHARES = [  # for each process of each kind; a child begins with memory that it shares
    ("share_watch", (2,), "watch", ["watch shared->counter"], "continue", "reverse-continue", ["shared->counter", "shared->last"]),
    ("share_watch_two", (2,), "watch", ["watch shared->other_page", "watch own"], "continue", "reverse-continue", ["shared->other_page + own"]),
    ("share_break", (1, 2), "stops", ["break in_turn"], "continue", "reverse-continue", ["shared->counter", "shared->last", "own"]),
    ("share_stepi", (1, 2), "steps", ["break in_turn", "continue"], "stepi", "reverse-stepi", ["$rax", "shared->counter", "shared->other_page"], 120),
    ("share_next", (1, 2), "steps", ["break in_turn", "continue"], "next", "reverse-next", ["shared->counter", "own"], 3),
]
MIRRORS += [(f"{name}_{kind}{who}", f"shares {kind} &{who}", *row)
            for kind in ("inherited", "memfd", "calls") for name, whos, *row in SHARES for who in whos]
QUICK = set("""fork_advice fault_and_end catch_syscall_checkpoints catch_syscall_some catch_fork catch_fork_and_call break break_programs condition watch watch_threads stepi step break_threads catch_throw signals signals_in_calls break_static
               break_stripped share_watch_inherited2 share_watch_two_calls2 share_stepi_memfd2""".split())


def symbol(program, name):
    out = subprocess.run(["nm", os.path.join(BUILD, "gdb", program)], capture_output=True, text=True).stdout
    for line in out.splitlines():
        words = line.split()
        if words[-1] == name:
            return "0x" + words[0]
    raise Wrong(f"{program} has no symbol {name}")


class Recordings:
    """One recording for each command line, made when it is first asked for."""

    def __init__(self):
        self.lock, self.made = threading.Lock(), {}

    def of(self, line, options=()):
        with self.lock:
            name = self.made.get((line, options))
            if not name:
                words = line.split()
                name = os.path.join(os.getcwd(), "rec-%d-%s" % (len(self.made), words[0].replace("/", "_")))
                program = words[0] if "/" in words[0] else os.path.join(BUILD, "gdb", words[0])
                p = subprocess.run(["timeout", "-k", "2", "60", REPRISE, "record", *options, "-o", name, "--", program, *words[1:]],
                                   stdin=subprocess.DEVNULL, capture_output=True)
                if p.returncode == 125:
                    raise Wrong(f"{line}: cannot be recorded: {p.stderr.decode()}")
                self.made[(line, options)] = name
        return name


def process(recording, n):
    out = subprocess.run([REPRISE, "ps", recording], capture_output=True, text=True).stdout
    return out.splitlines()[n].split()[0]


def collect(gdb, command, values):
    """Stops until there is no more history, and where that is."""
    stops = []
    while True:
        said = gdb.do(command)
        at = gdb.where(values)
        if BEGIN_OR_END in said:
            return stops, at
        if "failed" in said or "cannot" in said.lower():
            gdb.fail(command + ": " + said)
        stops.append(at)
        if len(stops) > MOST_STOPS:
            gdb.fail("it does not end")


def compare(gdb, there, back, what):
    for i, (a, b) in enumerate(zip(there, reversed(back))):
        if a != b:
            gdb.fail(f"{what} {i}: there {a}, back {b}")
    if len(there) != len(back):
        gdb.fail(f"{len(there)} {what} there, {len(back)} back")


def mirror_stops(gdb, there, back, values, times):
    begin = gdb.where(values)
    stops, end = collect(gdb, there, values)
    if not stops:
        gdb.fail("it never stops")
    again, first = collect(gdb, back, values)
    compare(gdb, stops, again, "stops")
    if first.place() != begin.place():
        gdb.fail(f"the begin was {begin}, is {first}")


def mirror_watch(gdb, there, back, values, times):
    """A stop backwards is in front of the write: a step forwards is the stop forwards, and one back again is where it was."""
    begin = gdb.where(values)
    stops, end = collect(gdb, there, values)
    if len(stops) < 2:
        gdb.fail("it hardly ever stops")
    for i, stop in reversed(list(enumerate(stops))):
        said = gdb.do(back)
        at = gdb.where(values)
        if BEGIN_OR_END in said:
            gdb.fail(f"only {len(stops) - 1 - i} of {len(stops)} stops on the way back")
        gdb.do("disable", "stepi")
        if gdb.where(values) != stop:
            gdb.fail(f"stop {i}: there {stop}, back (a step before) {gdb.where(values)}")
        gdb.do("reverse-stepi", "enable")
        if gdb.where(values) != at:
            gdb.fail(f"stop {i}: back at {at}, then at {gdb.where(values)}")
        same_program = i and at.position[0] == stops[i - 1].position[0]
        if same_program and at.values[0] != stops[i - 1].values[0]:
            gdb.fail(f"stop {i}: the value before was {at.values[0]}, and behind the write before {stops[i - 1].values[0]}")
    gdb.expect(back, BEGIN_OR_END)
    if gdb.where().place() != begin.place():
        gdb.fail(f"the begin was {begin}, is {gdb.where()}")


def mirror_steps(gdb, there, back, values, times):
    places = [gdb.where(values)]
    for _ in range(times):
        gdb.do(there)
        places.append(gdb.where(values))
    again = []
    for _ in range(times):
        gdb.do(back)
        again.append(gdb.where(values))
    compare(gdb, places[:-1], again, "steps")


KINDS = {"stops": mirror_stops, "watch": mirror_watch, "steps": mirror_steps}


def run_mirror(row, recordings):
    name, program, kind, setup, there, back, values, times = (*row, 0)[:8]
    program, _, which = program.partition(" &")
    known = program.split()[0].replace("_stripped", "") if "_stripped" in program else program.split()[0]

    def resolved(text):
        while "@" in text:
            word = text[text.index("@") + 1:].split(")")[0].split()[0]
            text = text.replace("@" + word, symbol(known, word))
        return text

    recording = recordings.of(program)
    with Gdb(recording, ["-p", process(recording, int(which))] if which else []) as gdb:
        for c in setup:
            gdb.do(resolved(c))
        KINDS[kind](gdb, there, back, [resolved(v) for v in values], times)
        gdb.quit()


def perform(name, act):
    began = time.monotonic()
    try:
        act()
        return name, None, time.monotonic() - began
    except special.Skipped as e:
        return name, f"skipped: {e}", time.monotonic() - began
    except Wrong as e:
        return name, str(e), time.monotonic() - began


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--all", action="store_true", default=os.environ.get("GDB_SESSIONS") == "all")
    options.add_argument("-j", type=int, default=2)
    options.add_argument("names", nargs="*")
    options = options.parse_args()
    recordings = Recordings()
    jobs = {row[0]: (lambda row=row: run_mirror(row, recordings)) for row in MIRRORS}
    for name, function in special.SCENARIOS.items():
        jobs[name] = lambda function=function: function(recordings)
    quick = QUICK | special.QUICK
    wanted = options.names or [n for n in jobs if options.all or n in quick]
    bad = 0
    os.environ.setdefault("REPRISE_DIR", os.path.join(os.getcwd(), "rd"))
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for name, why, seconds in pool.map(lambda n: perform(n, jobs[n]), wanted):
            skipped = why and why.startswith("skipped: ")
            print(f"{'ok' if not why else 'skipped' if skipped else 'FAILED'} {name} {seconds:.1f} s" + (f"\n{why}" if why else ""))
            bad += bool(why) and not skipped
    print(f"{len(wanted) - bad} of {len(wanted)} sessions")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())

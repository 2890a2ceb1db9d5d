"""Sessions that are more than there and back. Each gets the recordings and fails by Wrong."""

import os, random, re, shutil, signal, subprocess, time

from driver import REPRISE, Gdb, Wrong, environment

NO_MORE = "No more reverse-execution history"
SCENARIOS, QUICK = {}, set()


class Skipped(Exception):
    pass


def scenario(quick=False):
    def add(function):
        SCENARIOS[function.__name__] = function
        if quick:
            QUICK.add(function.__name__)
        return function
    return add


def check(gdb, holds, why):
    if not holds:
        gdb.fail(why)


# ---- one thread ----

@scenario(quick=True)
def finish_and_up(recordings):
    with Gdb(recordings.of("steps")) as gdb:
        gdb.do("break add", "continue", "continue")
        gdb.expect("reverse-finish", "Run back to call of")
        gdb.expect("x/i $pc", "call", "add")
        gdb.expect("p b", "= 0")
        gdb.do("delete", "break depth if n == 2", "continue")
        inside = gdb.where(["n"])
        gdb.expect("bt", "#0  depth (n=2)", "#1", "depth (n=3)", "depth (n=5)", "main ()")
        gdb.expect("up", "depth (n=3)")
        gdb.expect("p n", "= 3")
        gdb.do("delete", "down")
        gdb.expect("finish", "Run till exit", "Value returned is", "= 2")
        gdb.expect("p n", "= 3")
        gdb.do("reverse-stepi")
        gdb.expect("bt 1", "depth (n=2)")
        gdb.do("reverse-stepi 3")
        gdb.expect("bt 1", "depth (n=1)")
        gdb.do(f"seek {inside.text}")
        check(gdb, gdb.where(["n"]) == inside, "seek leads elsewhere")


@scenario(quick=True)
def break_rounds(recordings):
    """Breakpoints in tight loops are hit in each round, there and back."""
    with Gdb(recordings.of("rounds")) as gdb:
        for name, rounds in {"one_head": 20, "one_last": 20, "two_head": 28, "two_middle": 28, "three_head": 21}.items():
            for command in ("continue", "reverse-continue"):
                gdb.do("delete", f"break {name}", "ignore $bpnum 1000", command)
                gdb.expect("info breakpoints", f"already hit {rounds} times")


@scenario()
def hits_as_natively(recordings):
    """Breakpoints on instructions of the program, wherever they are, and watchpoints are hit as often as natively."""
    program = os.path.join(os.environ["BUILD"], "gdb", "steps_nopie")
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", program], capture_output=True, text=True).stdout
    places = [f"break *0x{pc}" for pc in re.findall(r"^ +([0-9a-f]+):", text, re.M)]
    choice = random.Random(11)
    for wanted in [["watch counter", "awatch table[2]"], *(choice.sample(places, choice.choice((1, 1, 2, 5))) for _ in range(12))]:
        setup = [c for n, what in enumerate(wanted, 2) for c in (what, f"ignore {n} 1000000")]
        script = ["break main", "run", *setup, "continue", "info breakpoints"]
        natively = subprocess.run(["gdb", "-nx", "-q", "-batch", *(w for c in script for w in ("-ex", c)), program], capture_output=True, text=True)
        with Gdb(recordings.of("steps_nopie")) as gdb:
            gdb.do("break main", "continue", *setup, "continue")
            ours, theirs = (re.findall(r"^(\d+) .*|already hit (\d+)", t[t.find("Num "):], re.M) for t in (gdb.do("info breakpoints"), natively.stdout))
            check(gdb, ours == theirs, f"{wanted}: {ours}, natively {theirs}")


@scenario(quick=True)
def follow_spawn(recordings):
    """The child begins with another program, which gdb is told."""
    with Gdb(recordings.of("spawns")) as gdb:
        gdb.do("catch fork", "catch exec")
        gdb.expect("continue", "Catchpoint 1 (forked process")
        gdb.do("set follow-fork-mode child")
        gdb.expect("continue", "is executing new program", "Catchpoint 2 (exec'd", "true")
        gdb.expect("info inferiors", "* 2", "true")
        gdb.expect("continue", "exits here with status 0")
        gdb.expect("reverse-continue", NO_MORE)


@scenario(quick=True)
def reverse_finish(recordings):
    with Gdb(recordings.of("steps")) as gdb: # of the selected frame, in recursion, with something to stop for on the way
        gdb.do("break depth if n == 1", "continue", "delete", "up 2")
        gdb.expect("reverse-finish", "Run back to call of #2", "depth (n=3)", "depth (n=4)")
        gdb.expect("bt", "#0", "depth (n=4)", "#1", "depth (n=5)", "main ()")
        gdb.expect("x/i $pc", "call", "depth")
        gdb.do("break depth if n == 0", "continue", "delete", "break depth if n == 2", "up 4")
        gdb.expect("reverse-finish", "Breakpoint", "depth (n=2)")
        gdb.do("delete")
        gdb.expect("reverse-finish", "depth (n=3)")
        gdb.do("up-silently 10")
        gdb.expect("reverse-finish", "outermost frame")
    with Gdb(recordings.of("steps_stripped_nopie")) as gdb: # where there are no symbols
        gdb.do("break printf", "continue", "delete")
        callers = [int(f, 16) for f in re.findall(r"#[1-9]\s+(0x[0-9a-f]+)", gdb.do("bt"))]
        gdb.do("reverse-finish")
        check(gdb, 2 <= callers[0] - int(gdb.value("(long)$pc")) <= 7, "not in front of the call")
        there = gdb.where()
        gdb.do("finish") if len(callers) < 2 else gdb.do("reverse-finish")
        check(gdb, gdb.where().position < there.position, "not back")


@scenario(quick=True)
def finish_behind_many_stores(recordings):
    """The call that is looked for ends the tick budget of the search, and its page is one whose stores are filtered by then."""
    with Gdb(recordings.of("pushes")) as gdb:
        gdb.do("break leaf")
        for caller in ("direct", "indirect", "direct"):
            gdb.expect("continue", "Breakpoint", "leaf")
            slot = gdb.value("(long)$rbp + 8")
            gdb.expect("reverse-finish", f"in {caller} ()")
            gdb.expect("x/i $pc", "call")
            gdb.expect("continue", "Breakpoint", "leaf")
            gdb.do(f"watch *(long *){slot}", "disable 1")
            gdb.expect("reverse-continue", "watchpoint", f"in {caller} ()")
            gdb.expect("x/i $pc", "call")
            gdb.do("delete $bpnum", "enable 1")
            gdb.expect("continue", "Breakpoint", "leaf")


@scenario(quick=True)
def back_along_a_trail(recordings):
    """What many steps back show is what is there when one goes to the same places."""
    look = ["x/24xg $rsp - 96", "x/2i $pc", "output $rbp"]
    for program, place, values, moves in (
            ("steps", "break total", ["output table", "output counter", "output *first"], ["reverse-stepi"] * 7 + ["reverse-stepi 23"]),
            ("strings", "break look_for", ["output marks", "output/x other[9000]@8"], ["reverse-stepi"] * 9)):
        with Gdb(recordings.of(program)) as gdb:
            gdb.do(place, "continue", "delete")
            seen = []
            for move in moves * 6:
                gdb.do(move)
                seen.append((gdb.where(), gdb.do(*look, *values)))
            positions = [at.position for at, _ in seen]
            check(gdb, positions == sorted(positions, reverse=True), "a step back leads forward")
            for at, shown in seen[::3] + seen[1::5]:
                gdb.do(f"seek {at.text}")
                check(gdb, gdb.where() == at, "seek leads elsewhere")
                check(gdb, gdb.do(*look, *values) == shown, f"{at.text}: not what the steps back showed:\n{shown}")


@scenario(quick=True)
def on_along_a_trail(recordings):
    """The same for many steps forwards, which go along a trail that is laid ahead: over stores, calls and threads, and there and back."""
    look = ["x/24xg $rsp - 96", "x/2i $pc", "output $rbp", "output $rcx"]
    for program, place, values in (("steps", "break insert", ["output table", "output counter", "output *first"]),
                                   ("strings", "break look_for", ["output marks", "output/x other[9000]@8"]),
                                   ("signals", "break on_usr1", ["output handled", "output faults"]),
                                   ("threads", "break take_turn", ["output turn", "output rounds", "output own"])):
        with Gdb(recordings.of(program)) as gdb:
            gdb.do("handle all nostop noprint pass", place, "continue", "delete", "set scheduler-locking off")
            seen = []
            for n in (37, 1, 90, 12, 3, 700, 61):
                gdb.do(f"stepi {n}")
                seen.append((gdb.where(), gdb.do(*look, *values)))
            for back, n in ((2, 9), (12, 30)): # from the middle of a trail, and on along it
                gdb.do(f"stepi {n}", f"reverse-stepi {back}", f"stepi {back}")
                seen.append((gdb.where(), gdb.do(*look, *values)))
            positions = [at.position for at, _ in seen]
            check(gdb, positions == sorted(positions), "a step leads back")
            for at, shown in seen[::-2] + seen[::2]:
                gdb.do(f"seek {at.text}")
                check(gdb, gdb.where() == at, "seek leads elsewhere")
                check(gdb, gdb.do(*look, *values) == shown, f"{at.text}: not what the steps showed:\n{shown}")


@scenario()
def watch_by_steps(recordings):
    """Software watchpoints, for which gdb takes step after step, and steps that pass a watchpoint stop where a watchpoint does."""
    for program, start, what, times in (("steps", "break steps.c:54", "counter", 2), ("threads", "break take_turn if me == 2", "rounds", 1)):
        with Gdb(recordings.of(program)) as gdb:
            gdb.do(start, "continue", "delete")
            begin = gdb.where()
            gdb.do(f"watch {what}", *["continue"] * times)
            hardware = gdb.where([what])
            gdb.do("delete", f"seek {begin.text}", "set can-use-hw-watchpoints 0", f"watch {what}")
            for _ in range(times):
                gdb.expect("continue", "Watchpoint", "Old value")
            software = gdb.where([what])
            check(gdb, software == hardware, f"by steps {software}, watched {hardware}")
            gdb.do("delete", f"seek {begin.text}", "set can-use-hw-watchpoints 1", f"watch {what}", "set scheduler-locking off")
            for _ in range(times):
                gdb.expect("stepi 100000", "Hardware watchpoint", "Old value")
            check(gdb, gdb.where([what]) == hardware, f"by stepi {gdb.where([what])}, watched {hardware}")


@scenario(quick=True)
def watch_and_step_back(recordings):
    with Gdb(recordings.of("steps")) as gdb:
        gdb.do("break fill", "continue", "delete", "watch counter")
        for new, line in ((3, "counter += sum"), (0, "counter += sum")):
            for _ in range(50):
                said = gdb.do("reverse-step")
                if "watchpoint" in said:
                    break
            check(gdb, f"New value = {new}" in said and line in said, f"no stop where counter was {new}: {said}")
        gdb.expect("next", "Old value = 0", "New value = 3")


@scenario(quick=True)
def back_without_lines(recordings):
    """gdb goes back instruction by instruction, and over calls."""
    with Gdb(recordings.of("steps_nodebug")) as gdb:
        gdb.do("break total", "continue", "delete")
        gdb.expect("finish", "in main ()")
        gdb.do("break depth", "reverse-continue")
        gdb.do("delete", "break fill", "continue", "delete")
        gdb.expect("reverse-finish", "in main ()")
        gdb.expect("x/i $pc", "call", "fill")
        there = gdb.where()
        gdb.expect("reverse-next", "Single stepping until exit from function main", "__libc_start")
        check(gdb, gdb.where().position < there.position, "not back")


@scenario()
def tbreak_and_until(recordings):
    with Gdb(recordings.of("steps_static")) as gdb:
        gdb.do("tbreak insert")
        gdb.expect("continue", "Temporary breakpoint 1, insert (key=0)")
        gdb.do("finish")
        at = gdb.where(["counter"])
        gdb.expect("advance total", "total ()")
        gdb.expect("info breakpoints", "No breakpoints")
        gdb.do("tbreak insert")
        gdb.expect("reverse-continue", "insert (key=40)")
        gdb.expect("reverse-continue", NO_MORE)


@scenario()
def rwatch_and_awatch(recordings):
    with Gdb(recordings.of("steps")) as gdb:
        gdb.do("break main", "continue", "delete", "rwatch counter")
        reads = []
        while "exits here" not in gdb.do("continue"):
            reads.append(gdb.where(["counter"]))
        check(gdb, len(reads) == 3, f"{len(reads)} reads of counter, not 3")
        for there in reversed(reads):
            gdb.expect("reverse-continue", "read watchpoint")
            check(gdb, gdb.where(["counter"]).position < there.position, "not in front of the read")
        gdb.do("delete", "awatch counter", "seek begin")
        n = 0
        while "exits here" not in gdb.do("continue"):
            n += 1
        back = 0
        while NO_MORE not in gdb.do("reverse-continue"):
            back += 1
        check(gdb, n == back and n >= 6, f"{n} accesses there, {back} back")


@scenario(quick=True)
def string_instructions(recordings):
    """What a repeated instruction touches counts, wherever on its way that is; backwards one stops in front of all of it."""
    with Gdb(recordings.of("strings")) as gdb:
        gdb.do("break main", "continue", "delete")
        for watch, marks in (("watch area[9000]", [0, 3, 6, 6, 6]), ("watch other[9000]", [2]), ("rwatch area[9000]", [2, 4, 7]),
                             ("rwatch area[0]", [2, 4, 5]), ("awatch area[9000]", [0, 1, 2, 3, 4, 6, 6, 6, 7])):
            gdb.do("delete", "seek begin", watch)
            there = []
            while NO_MORE not in gdb.do("continue"):
                there.append(gdb.where(["marks", "area[9000]"]))
            check(gdb, [int(s.values[0]) for s in there] == marks, f"{watch}: {there}")
            for stop in reversed(there):
                gdb.do("reverse-continue")
                gdb.do("disable", "stepi")
                check(gdb, gdb.where(["marks", "area[9000]"]) == stop, f"{watch}: there {stop}, back elsewhere")
                gdb.do("reverse-stepi", "enable")
            gdb.expect("reverse-continue", NO_MORE)
        gdb.do("delete", "break copy", "continue")
        gdb.expect("why area[9000]", "fill (", "0x1 -> 0x1")


@scenario(quick=True)
def breakpoint_where_it_ends(recordings):
    """gdb steps over a breakpoint before it goes on; that the process ends in this step must not leave it waiting forever."""
    with Gdb(recordings.of("steps"), timeout=20) as gdb:
        gdb.do("seek end", "reverse-stepi")
        last = gdb.where()
        gdb.do(f"break *{last.pc}")
        for _ in range(2):
            gdb.expect("continue", "exits here", NO_MORE)
            gdb.expect("stepi", "exits here", NO_MORE)
            gdb.expect("reverse-continue", "Breakpoint 1,")
            check(gdb, gdb.where() == last, "not at the call that ends the process")
            gdb.expect("stepi", "exits here")
            gdb.expect("next", NO_MORE)
            gdb.expect("reverse-stepi", "Breakpoint 1,")
    with Gdb(recordings.of("signals crash"), timeout=20) as gdb:
        gdb.do("handle all nostop noprint pass", "seek end")
        end = gdb.where()
        gdb.expect("bt 1", "die")
        gdb.do("handle SIGSEGV stop", "seek end")
        check(gdb, gdb.where() == end, "the end is elsewhere if the signal is not stopped for")
        gdb.do(f"break *{end.pc}", "break die")
        for command in ("continue", "stepi", "next"):
            gdb.do("seek end")
            gdb.expect("reverse-continue", "Breakpoint 1,")
            gdb.expect("continue", "SIGSEGV")
            for _ in range(3):
                gdb.expect(command, "killed here by signal 11", "Breakpoint 1,")
        gdb.do("delete 1", "next")
        gdb.expect("next", NO_MORE)
        gdb.expect("reverse-continue", "SIGSEGV")
        gdb.expect("reverse-continue", "Breakpoint 2,")


@scenario(quick=True)
def changes_are_thrown_away(recordings):
    with Gdb(recordings.of("steps")) as gdb:
        gdb.do("break total", "continue")
        before = gdb.where(["counter", "table", "$rax", "$rsp", "first->key"])
        gdb.expect("print add(5, 6)", "= 11")
        gdb.do("delete")
        gdb.expect("print total()", "100")
        gdb.expect("print (int)strlen(text)", "= 40")
        gdb.do("set var counter = 77", "set var table[3] = -1")
        gdb.expect("print counter", "= 77")
        gdb.expect("print table", "-1")
        gdb.do("set $rax = 123", "set var text[0] = 'Q'")
        gdb.expect("print $rax", "= 123")
        gdb.do("stepi", "reverse-stepi")
        check(gdb, gdb.where(["counter", "table", "$rax", "$rsp", "first->key"]) == before, "the recording was changed")
        gdb.expect("print text[0]", "'x'")
        gdb.do("set var counter = 5", "reverse-stepi", "stepi")
        check(gdb, gdb.where(["counter", "table", "$rax", "$rsp", "first->key"]) == before, "the recording was changed")


@scenario(quick=True)
def calls_anywhere(recordings):
    """Functions called where a signal is about to be delivered, at the end, in a thread that waits; what one changes, the next
    one sees, until the program goes on."""
    with Gdb(recordings.of("signals crash"), args=["-e"]) as gdb:
        end = gdb.where(["faults"])
        for _ in range(2):
            gdb.expect("print (int)strlen(how)", "= 5")
        gdb.expect("call (void)_exit(3)", "while in a function called from GDB")
        check(gdb, gdb.where(["faults"]) == end, "another place than before the calls")
        gdb.expect("continue", "killed here by signal 11", NO_MORE)
        gdb.expect("print (int)strlen(how)", "= 5")
        gdb.expect("bt", "die", "main")
    with Gdb(recordings.of("threads")) as gdb:
        gdb.do("break take_turn if me == 3 && turn > 4", "continue", "delete")
        here = gdb.where()
        for n in re.findall(r"^[* ] +(\d+) ", gdb.do("info threads"), re.M):
            gdb.do(f"thread {n}")
            frame = gdb.do("bt")
            gdb.expect(f"print (int)abs(-{n})", f"= {n}")
            gdb.expect("print (int)getpagesize()", "= 4096")
            check(gdb, gdb.do("bt") == frame, f"thread {n} is elsewhere after a call")
        gdb.do(f"seek {here.text}")
        check(gdb, gdb.where() == here, "another place than before the calls")
    with Gdb(recordings.of("steps")) as gdb:
        gdb.do("break total", "continue", "delete")
        gdb.do("call (void)strcpy(text, \"changed\")")
        gdb.expect("print (int)strlen(text)", "= 7")
        gdb.do("stepi", "reverse-stepi")
        gdb.expect("print (int)strlen(text)", "= 40")
        gdb.do("break total", "seek begin", "continue")
        gdb.expect("call (int)write(1, \"printed\\n\", 8)", "printed\n", "= 8")
        gdb.do("call (int)puts(\"and this\")")
        gdb.expect("call (int)fflush(0)", "and this\n", "= 0")
        gdb.do("delete")
        gdb.expect("continue", "exits here")
        gdb.expect("print add(20, 22)", "= 42")


@scenario(quick=True)
def positions(recordings):
    with Gdb(recordings.of("steps")) as gdb:
        gdb.do("break insert", "continue", "continue")
        second = gdb.where(["key"])
        gdb.expect("checkpoint", "Checkpoint 1 at")
        gdb.do("continue", "checkpoint", "continue")
        gdb.expect("info checkpoints", "1  ", "2  ")
        gdb.do("restart 1")
        check(gdb, gdb.where(["key"]) == second, "restart 1 leads elsewhere")
        gdb.do("restart 2")
        gdb.expect("p key", "= 20")
        gdb.do("delete checkpoint 1")
        check(gdb, "1  " not in gdb.do("info checkpoints"), "checkpoint 1 is still there")
        gdb.expect("info recording", "steps")
        for wrong in ("restart 7", "restart -1", "restart x", "seek", "seek 3:x"):
            here = gdb.where(["key"])
            said = gdb.do(wrong)
            check(gdb, said.strip() and "Protocol" not in said and gdb.where(["key"]) == here, f"{wrong}: {said}")
        gdb.expect("restart", "_start () from", "ld-linux")
        gdb.expect("reverse-stepi", NO_MORE)
        gdb.do("delete", "seek end")
        end = gdb.where()
        gdb.expect("continue", NO_MORE)
        check(gdb, gdb.where() == end, "behind the end")
        gdb.do("reverse-stepi", "stepi")
        check(gdb, gdb.where().position == end.position, "another end")
        gdb.do("break insert")
        gdb.expect("run", "insert (key=0)")


@scenario()
def begin_and_end(recordings):
    """Commands that run into the begin or the end of history, and go on from there."""
    with Gdb(recordings.of("steps_nopie")) as gdb:
        begin = gdb.where()
        for command in ("reverse-continue", "reverse-step", "reverse-next", "reverse-stepi", "reverse-nexti"):
            gdb.expect(command, NO_MORE)
            check(gdb, gdb.where() == begin, f"{command} leaves the begin")
        gdb.do("stepi 3")
        gdb.expect("reverse-stepi 5", NO_MORE)
        check(gdb, gdb.where() == begin, "another begin")
        gdb.do("seek end")
        end = gdb.where()
        for command in ("continue", "step", "next", "stepi", "nexti"):
            gdb.expect(command, NO_MORE)
            check(gdb, gdb.where() == end, f"{command} leaves the end")
        gdb.do("break main")
        gdb.expect("reverse-continue", "Breakpoint 1, main")
        gdb.do("monitor exits end", "delete")
        gdb.expect("continue", "exited with code 03")


@scenario()
def registers_and_memory(recordings):
    with Gdb(recordings.of("steps")) as gdb:
        gdb.do("break total", "continue")
        gdb.expect("info registers", "rax", "rip", "total", "eflags")
        gdb.expect("p/x $fs_base", "0x")
        gdb.expect("p/x $mxcsr", "0x1f80")
        maps = gdb.do("info proc mappings")
        check(gdb, all(name in maps for name in ("steps", "libc", "[heap]", "[stack]")), "mappings lack something")
        gdb.expect("info auxv", "AT_PHDR", "AT_ENTRY")
        gdb.expect("info sharedlibrary", "libc.so")
        gdb.expect("info symbol $pc", "total")
        gdb.expect("x/s text", "xxxxxxxxcopied")
        gdb.expect("p *first", "key = 40", 'name = "item 40')
        gdb.expect("p *(int *)0", "Cannot access memory")
        gdb.expect("p $xmm0", "v4_float")
        gdb.expect("find /b text, +40, 'c', 'o', 'p'", "1 pattern found")
        gdb.expect("info frame", "rip", "called by")
        gdb.do("dump binary memory dumped text text+14")
        gdb.expect("ptype struct item", "struct item *next")


@scenario(quick=True)
def program_written_anew(recordings):
    """Files come from the recording where they have changed; the dynamic linker is found under the name that the program has for it."""
    program = os.path.join(os.getcwd(), "anew")
    shutil.copy(os.path.join(os.environ["BUILD"], "gdb", "steps"), program)
    recording = recordings.of(program)
    with open(program, "ab") as f:
        f.write(b"something else")
    with Gdb(recording) as gdb:
        check(gdb, "arning" not in gdb.do("break total", "continue"), "gdb complains")
        said = gdb.do("info sharedlibrary")
        check(gdb, "No  " not in said and "ld-linux" in said, "a library is not found")
        gdb.expect("bt", "total ()", "main ()")


# ---- signals ----

@scenario(quick=True)
def next_over_signals(recordings):
    """next, there and back, over a call during which a handler runs; and out of a handler."""
    with Gdb(recordings.of("signals")) as gdb:
        gdb.do("handle all nostop noprint pass", "break main", "continue", "next", "next", "next", "next")
        gdb.expect("frame", "raise(SIGUSR1)")
        before = gdb.where(["handled"])
        gdb.expect("next", "kill(getpid(), SIGUSR1)")
        behind = gdb.where(["handled"])
        check(gdb, behind.values == ("1",), "the handler was not run")
        gdb.expect("reverse-next", "raise(SIGUSR1)")
        check(gdb, gdb.where(["handled"]) == before, "reverse-next leads elsewhere")
        gdb.do("break on_usr1", "continue")
        gdb.expect("bt", "on_usr1", "<signal handler called>", "in main (")
        inside = gdb.where(["handled"])
        gdb.do("next")
        gdb.expect("p handled", "= 1")
        gdb.expect("reverse-next", "handled++")
        check(gdb, gdb.where(["handled"]) == inside, "reverse-next in a handler leads elsewhere")
        gdb.do("delete")
        gdb.expect("reverse-finish", "Run back to call of")
        check(gdb, gdb.where().position < inside.position, "reverse-finish did not leave the handler")
        check(gdb, "on_usr1" not in gdb.do("bt"), "still in the handler")


@scenario(quick=True)
def at_the_crash(recordings):
    with Gdb(recordings.of("signals crash"), args=["-e"]) as gdb:
        gdb.expect("bt", "die", "main")
        gdb.expect("p $_siginfo.si_signo", "= 11")
        gdb.expect("p $_siginfo._sifields._sigfault.si_addr", "0x20")
        gdb.expect("p how", "crash")
        end = gdb.where(["faults"])
        gdb.expect("continue", "killed here by signal 11", NO_MORE)
        gdb.do("reverse-stepi")
        check(gdb, gdb.where().position < end.position, "a step back from the end does not go back")
        gdb.do("stepi")
        check(gdb, gdb.where(["faults"]) == end, "and the step behind it is not the crash")
        gdb.do("handle all nostop noprint pass", "handle SIGSEGV stop print", "break die")
        gdb.expect("reverse-continue", "Breakpoint 1, die")
        gdb.expect("reverse-next", "die(argv[1])")
        gdb.do("delete", "watch faults")
        gdb.expect("reverse-continue", "Old value = 102", "New value = 2")


@scenario()
def reverse_to_signal(recordings):
    """A fatal signal is a stop, there and back; what gdb passes is none."""
    with Gdb(recordings.of("signals abort")) as gdb:
        gdb.do("handle all nostop noprint pass", "handle SIGABRT stop print")
        gdb.expect("continue", "Program received signal SIGABRT")
        at = gdb.where()
        gdb.expect("continue", "killed here by signal 6", NO_MORE)
        gdb.expect("reverse-continue", "SIGABRT")
        check(gdb, gdb.where() == at, "another place")
        gdb.expect("reverse-continue", NO_MORE)


# ---- threads ----

@scenario(quick=True)
def thread_list(recordings):
    with Gdb(recordings.of("threads")) as gdb:
        gdb.do("break take_turn if me == 3 && turn > 4", "continue")
        said = gdb.do("info threads")
        for name in ("threads", "worker-1", "worker-2", "worker-3"):
            check(gdb, f'"{name}"' in said, f"no thread {name}")
        gdb.expect("thread apply all bt", "main ()")
        check(gdb, said.count("Thread ") == 4, f"not four threads: {said}")
        bt = gdb.do("thread apply all bt")
        check(gdb, bt.count("run (arg=") == 3, "not three stacks that begin in run")
        gdb.expect("p own", "=")
        gdb.expect("p errno", "=")
        gdb.do("thread find worker-1")
        current = gdb.value("$_thread")
        for n in re.findall(r"^[* ] +(\d+) ", said, re.M):
            gdb.do(f"thread {n}")
            gdb.expect("p $_thread", n)
            gdb.expect("p &own", "0x")
        gdb.do(f"thread {current}")


@scenario()
def step_another_thread(recordings):
    """A step of a thread that is not the one that ran, forwards and backwards. gdb numbers threads anew when they come back."""
    with Gdb(recordings.of("threads")) as gdb:
        gdb.do("break take_turn if me == 3 && turn > 4", "continue", "delete")
        here = gdb.where()
        for name in ("worker-1", "worker-2", "threads"):
            gdb.do(f"seek {here.text}")
            number = re.search(r"^\*? +(\d+) .*\"%s\"" % name, gdb.do("info threads"), re.M).group(1)
            gdb.do(f"thread {number}")
            gdb.do("reverse-stepi")
            back = gdb.where()
            check(gdb, back.position < here.position, f"{name}: {back} is not before {here}")
            check(gdb, gdb.value("$_thread") == number, f"{name}: another thread")
            gdb.do("stepi")
            there = gdb.where()
            check(gdb, there.position > here.position and gdb.value("$_thread") == number, f"{name}: {back} and then {there}")
            gdb.do("reverse-stepi")
            check(gdb, gdb.where() == back, f"{name}: {back}, then {gdb.where()}")
            gdb.do("set scheduler-locking off", "stepi 5", "reverse-stepi 5", "set scheduler-locking step")
            check(gdb, gdb.where() == back, f"{name}, unlocked: {back}, then {gdb.where()}")


@scenario()
def step_over_others(recordings):
    """Instruction by instruction back over a call in which others ran: their breakpoints and watchpoints stop it, as forwards."""
    with Gdb(recordings.of("threads")) as gdb:
        gdb.do("break threads.c:45", "continue", "delete")
        here = gdb.where()
        for stop, said in (("break take_turn", "Breakpoint 2, take_turn"), ("watch rounds", "Hardware watchpoint 4")):
            gdb.do(f"seek {here.text}", stop)
            gdb.expect("reverse-stepi 3000", said)
            at = gdb.where(["rounds", "turn"])
            check(gdb, at.thread != here.thread, f"not by another thread: {at}")
            gdb.do("delete")
            gdb.do(f"seek {here.text}", stop)
            gdb.do("reverse-continue")
            check(gdb, gdb.where(["rounds", "turn"]) == at, f"{at}, but reverse-continue leads to {gdb.where()}")
            gdb.do("delete")


@scenario(quick=True)
def break_where_one_waits(recordings):
    """gdb steps over a breakpoint at a call in which others go on, or that ends the thread: it asserts that nobody else stops meanwhile,
    and yet misses nothing."""
    def stops(gdb, command):
        seen = {"wait": [], "turn": [], "watch": 0}
        for _ in range(120):
            said = gdb.do(command)
            if NO_MORE in said:
                return seen
            seen["watch"] += "watchpoint" in said
            for kind in ("wait", "turn"):
                if f"Breakpoint {gdb.number[kind]}, " in said:
                    seen[kind].append(gdb.where().place())
        gdb.fail("it does not end")

    for call, function in (("futex", "abstimed_wait"), ("exit", "start_thread")):
        with Gdb(recordings.of("threads")) as gdb:
            gdb.do(f"catch syscall {call}")
            for _ in range(200):
                if "call to syscall" in gdb.do("continue") and function in gdb.do("bt 1"):
                    break
            at = gdb.value("(long)$pc")
            gdb.do("delete", "seek begin", "watch rounds")
            gdb.number = {}
            for kind, place in (("wait", f"*{at}"), ("turn", "take_turn")):
                gdb.number[kind] = re.search(r"Breakpoint (\d+) at", gdb.do(f"break {place}")).group(1)
            there, back = stops(gdb, "continue"), stops(gdb, "reverse-continue")
            check(gdb, there["watch"] == back["watch"] == 12, f"{there['watch']} and {back['watch']} changes")
            check(gdb, len(there["turn"]) == 12 and len(there["wait"]) > 2, f"stops are missing: {there}")
            for kind in gdb.number:
                check(gdb, there[kind] == back[kind][::-1], f"there {there[kind]}, back {back[kind]}")


@scenario()
def step_to_thread_end(recordings):
    """A thread that ends while it is stepped: somebody else is there."""
    with Gdb(recordings.of("threads")) as gdb:
        gdb.do("break take_turn if me == 1 && turn == 9", "continue", "delete", "finish")
        gdb.do("next", "next", "next")
        begun = time.monotonic()
        for _ in range(6):
            said = gdb.do("finish")
            if NO_MORE in said or "not meaningful" in said or "outermost" in said:
                break
        gdb.do("stepi 400")
        gdb.where()
        gdb.do("reverse-stepi 20")
        gdb.where()


# ---- C++ ----

@scenario()
def cxx_frames(recordings):
    with Gdb(recordings.of("throws")) as gdb:
        gdb.do("catch throw")
        gdb.expect("continue", "exception thrown")
        gdb.expect("bt", "__cxa_throw", "Broken::area", "measure", "attempt", "main")
        gdb.do("up 2")
        gdb.expect("p local.side", "= 1")
        gdb.do("delete", "break throws.cc:40")
        gdb.expect("continue", "attempt")
        gdb.do("delete", "catch throw")
        gdb.expect("reverse-continue", "exception thrown")
        gdb.do("delete", "break largest<int>")
        gdb.expect("continue", "largest")
        gdb.expect("p all.size()", "= 6")
        gdb.expect("p caught", "= 3")


# ---- processes ----

def process_list(recording):
    out = subprocess.run([REPRISE, "ps", "--json", recording], capture_output=True, text=True).stdout
    return [int(p) for p in re.findall(r'"pid": ?(\d+)', out)]


@scenario()
def child_process(recordings):
    recording = recordings.of("family")
    pids = process_list(recording)
    child = pids[1]
    with Gdb(recording, args=["-p", str(child)]) as gdb:
        gdb.do("break in_child", "watch child_work")
        gdb.expect("info inferiors", f"process {child}")
        gdb.expect("continue", "in_child")
        for want in ("1", "3", "6"):
            gdb.expect("continue", f"New value = {want}")
        gdb.expect("continue", "exits here with status 6")
        for want in ("3", "1", "0"):
            gdb.expect("reverse-continue", f"New value = {want}")
        gdb.expect("reverse-continue", "in_child")
        gdb.expect("reverse-continue", NO_MORE)


@scenario()
def exec_there_and_back(recordings):
    """Steps over execs, places in other programs, the end in the last one."""
    recording = recordings.of("family")
    with Gdb(recording) as gdb:
        begin = gdb.where()
        gdb.do("break after_exec", "continue")
        first = gdb.where(["n"])
        gdb.do("continue")
        second = gdb.where(["n"])
        check(gdb, (first.position[0], second.position[0]) == (1, 2), f"programs: {first} {second}")
        gdb.do("delete", f"seek {first.text}")
        check(gdb, gdb.where(["n"]) == first, f"seek leads to {gdb.where(['n'])}, not to {first}")
        gdb.do("restart")
        check(gdb, gdb.where() == begin, "another begin")
        gdb.do(f"seek {second.text}")
        check(gdb, gdb.where(["n"]) == second, "seek leads elsewhere")
        gdb.expect("bt", "after_exec", "main (argc=3")
        gdb.do("catch exec")
        gdb.expect("continue", "exec'd", "family")
        fresh = gdb.where()
        check(gdb, fresh.position[0] == 3, f"not in the last program: {fresh}")
        gdb.do("reverse-stepi")
        gdb.expect("x/i $pc", "syscall")
        gdb.expect("p $rax", "59")
        gdb.expect("bt", "execve", "main")
        gdb.do("stepi")
        check(gdb, gdb.where() == fresh, "a step over exec leads elsewhere")
        gdb.do("delete", "tbreak before_exec")
        gdb.do("reverse-continue")
        gdb.expect("p n", "= 60")
    with Gdb(recording, args=["-e"]) as gdb:
        gdb.expect("bt", "exit", "main")
        check(gdb, gdb.where().position[0] == 3, "the end is not in the last program")


@scenario()
def exec_of_another_program(recordings):
    recording = recordings.of("family")
    child = process_list(recording)[2]
    with Gdb(recording, args=["-p", str(child)]) as gdb:
        gdb.do("break before_exec")
        gdb.expect("continue", "before_exec (n=50)")
        at = gdb.where()
        gdb.do("delete", "catch exec")
        gdb.expect("continue", "echo")
        gdb.expect("info inferiors", "/echo")
        gdb.do("delete", "set breakpoint pending on", "break write")
        gdb.expect("continue", "write")
        gdb.expect("continue", "exits here with status 0")
        gdb.do("delete", "break before_exec")
        gdb.expect("reverse-continue", "family", "before_exec (n=50)")
        check(gdb, gdb.where() == at, "another place")


@scenario(quick=True)
def follow_fork(recordings):
    """Into the child, with the breakpoints; from there to the other one and back by `attach`."""
    recording = recordings.of("family")
    parent, first, second = process_list(recording)[:3]
    with Gdb(recording) as gdb:
        gdb.do("break before_exec", "break in_child")
        gdb.do("set follow-fork-mode child", "catch fork")
        gdb.expect("continue", f"forked process {first}")
        at = gdb.where()
        gdb.do("delete 3") # the catchpoint
        gdb.expect("continue", f"[Detaching after fork from parent process {parent}]", "in_child")
        gdb.expect("info inferiors", f"* 2    process {first}")
        gdb.expect("reverse-continue", NO_MORE)
        gdb.expect("p $rax", "= 0")
        gdb.expect("continue", "in_child")
        gdb.do("detach")
        gdb.expect("info recording", f"process {second}", "No process is debugged now")
        gdb.do(f"attach {second}")
        gdb.expect("continue", "before_exec (n=50)")
        gdb.do("detach", f"attach {parent}", "set follow-fork-mode parent")
        gdb.do(f"seek {at.text}")
        check(gdb, gdb.where() == at, "another place")
        gdb.expect("continue", "before_exec (n=6)")


@scenario(quick=True)
def from_a_checkpoint(recordings):
    """The end of a process that was restored from a checkpoint: who its threads are and what they do, and what a child has."""
    recording = recordings.of("late")
    child = process_list(recording)[1]
    with Gdb(recording, args=["-e"]) as gdb:
        said = gdb.do("info threads")
        check(gdb, re.findall(r'"(\w+)" \((?:in )?(\w+)', said) == [("chief", "running"), ("first", "pause"), ("second", "pause")], said)
        gdb.expect("p status >> 8", "= 3")
        gdb.expect("p kept[0]", "= 7")
    with Gdb(recording, args=["-p", str(child)]) as gdb:
        for _ in range(2):
            gdb.do("break in_child", "continue")
            gdb.expect("p kept[0]", "Cannot access memory")
            gdb.expect("p wiped[0]", "= 0")
            gdb.do("seek end")
            gdb.expect("p wiped[0]", "= 0")


@scenario(quick=True)
def why_expressions(recordings):
    """Registers, variables in registers, any expression; arithmetic leads to the input, not to the factor; names of C++."""
    with Gdb(recordings.of("origin 77"), args=["-e"]) as gdb:
        if "python" in gdb.do("python print('has ' + 'it')").lower():
            raise Skipped("gdb without Python")
        at = gdb.where()
        for command in ("why value", "why -n 3 value", "why $" + re.search(r"in \$(\w+)", gdb.do("info address value")).group(1)):
            gdb.expect(command, "= 0xe7", "from", "an input: argument 1 of the program, \"77\"")
        gdb.expect("why threshold + 1", "neither in memory nor in a register")
        gdb.expect("why nosuch", "No symbol")
        gdb.expect("why -n 2 * & threshold", "4 bytes = 0x64", "as it is in")
        gdb.expect("why *kept", "not there", "nothing is mapped there")
        check(gdb, gdb.where() == at, "another place")
    with Gdb(recordings.of("throws"), args=["-e"]) as gdb:
        gdb.expect("why destroyed", "Shape::~Shape ()")


@scenario(quick=True)
def sent_elsewhere(recordings):
    """jump and return happen in a copy, and gdb says so; going back is in the recording."""
    with Gdb(recordings.of("steps")) as gdb:
        gdb.do("break total", "continue")
        at = gdb.where(["counter", "$sp"])
        gdb.do("return")
        gdb.expect("bt 1", "main")
        gdb.expect("when", "Position " + at.text, "was sent elsewhere from there, in a copy")
        gdb.do("stepi", "stepi")
        gdb.expect("when", "Position " + at.text, "in a copy")
        gdb.do("reverse-stepi", "stepi")
        check(gdb, gdb.where(["counter", "$sp"]) == at, "another place")
        gdb.do("set var counter = 99", "delete")
        check(gdb, "copy" not in gdb.do("when"), "only a variable was changed")
        gdb.expect("jump exit", "has ended: this is the recording again")
        check(gdb, gdb.where(["counter", "$sp"]) == at, "another place")
        gdb.expect("print add(1, 2)", "= 3")
        check(gdb, "si_signo" not in gdb.do("print $_siginfo"), "a signal that there is not")


@scenario(quick=True)
def information(recordings):
    """What gdb tells of a process, and what it must not begin."""
    with Gdb(recordings.of("steps"), args=["-e"]) as gdb:
        said = gdb.expect("info sharedlibrary", "Yes", "libc.so.6", "Yes", "ld-linux")
        check(gdb, said.count("0x") == 4, f"libraries: {said}")
        code = re.search(r"(0x\S+)\s+r-xp\s+\S+/steps\n", gdb.do("info proc mappings"))
        check(gdb, code and int(code.group(1), 16) > 0, "the program's code is not at the begin of its file")
        gdb.expect("info auxv", "AT_ENTRY", "AT_EXECFN", "steps")
        gdb.expect("info proc exe", "/steps")
        gdb.expect("info proc cmdline", "cmdline = '", "/gdb/steps'")
        for command in ("record", "record full", "record btrace"):
            gdb.expect(command, "This is a recording")
        gdb.expect("info record", "No recording is currently active")
        gdb.expect("reverse-stepi", "in ")


@scenario(quick=True)
def seek_from_a_thread(recordings):
    """To where that thread does not exist, and to where it does again."""
    with Gdb(recordings.of("threads")) as gdb:
        begin = gdb.where()
        registers = gdb.do("info registers")
        gdb.do("break take_turn if me == 2", "continue")
        at = gdb.where(["me"])
        gdb.do("thread 1", "info registers", "thread find worker-2", f"thread {gdb.value('$_thread')}")
        gdb.do("seek begin")
        check(gdb, gdb.where() == begin, "another begin")
        check(gdb, gdb.do("info registers") == registers, "registers of another place")
        gdb.expect("info threads", "* 1 ", "_start")
        gdb.do("stepi", f"seek {at.text}")
        check(gdb, gdb.where(["me"]) == at, "another place")
        gdb.do("reverse-stepi", "restart")
        check(gdb, gdb.where() == begin, "another begin")


# ---- long searches ----

@scenario(quick=True)
def interrupt_steps(recordings):
    """Ctrl-C while gdb makes one step after the other: each is over before anybody looks."""
    with Gdb(recordings.of("long")) as gdb:
        gdb.do("seek end")
        for _ in range(4):
            gdb.send("reverse-stepi 1000000000")
            time.sleep(0.3)
            gdb.interrupt()
            said = gdb.do("p 1")  # between two steps gdb gives up by itself: Quit
            check(gdb, "SIGINT" in said or "Quit" in said, "not interrupted")
        at = gdb.where()
        gdb.do("reverse-stepi", "stepi")
        check(gdb, gdb.where() == at, "another place after a step back and a step")


@scenario(quick=True)
def interrupt_false_conditions(recordings):
    """Ctrl-C while gdb goes from one write to the next, because a condition that only it can evaluate is false."""
    with Gdb(recordings.of("long"), timeout=40) as gdb:
        gdb.do("break main", "continue", "delete", "set $n = 0", "watch state if ($n++, 0)")
        for _ in range(3):
            gdb.send("continue")
            time.sleep(1)
            gdb.interrupt()
            said = gdb.do("p 1")  # while it evaluates gdb gives up by itself: Quit
            check(gdb, "SIGINT" in said or "Quit" in said, "not interrupted")
        check(gdb, int(gdb.value("$n")) > 3, "nothing was evaluated")


@scenario(quick=True)
def interrupt_called_function(recordings):
    """Ctrl-C in a function that was called and makes one system call after the other; so long as it runs, the end of gdb ends all."""
    with Gdb(recordings.of("spins")) as gdb:
        gdb.do("break main", "continue")
        at = gdb.where()
        gdb.send("call spin()")
        time.sleep(0.5)
        gdb.interrupt()
        gdb.expect("p rounds > 100", "SIGINT", "= 1")
        gdb.do(f"seek {at.text}")
        check(gdb, gdb.where() == at, "seek leads elsewhere")
        gdb.expect("p rounds", "= 0")
        server = int(subprocess.run(["pgrep", "-P", str(gdb.process.pid)], capture_output=True, text=True).stdout.split()[0])
        gdb.send("call spin()")
        time.sleep(0.5)
        gdb.process.kill()
        gdb.process.wait()
        end = time.monotonic() + 8
        while os.path.exists(f"/proc/{server}") and time.monotonic() < end:
            time.sleep(0.05)
        check(gdb, not os.path.exists(f"/proc/{server}"), "the server goes on without gdb")


@scenario(quick=True)
def call_where_faults_pass(recordings):
    """Where a called function returns to nothing can be executed. That is no fault of the program's, though it wants those by itself."""
    recording = recordings.of("signals")
    with Gdb(recording) as gdb:
        gdb.do("handle all nostop noprint pass", "break fault", "continue")
        at = gdb.where()
        info = gdb.do("info proc")
        gdb.expect("print (int)getpid()", "= " + re.search(r"process (\d+)", info).group(1))
        check(gdb, gdb.where() == at, "a call leads elsewhere")


@scenario(quick=True)
def catch_forks_from_behind(recordings):
    """Going back from behind them, one stops for each fork once."""
    with open("forks.sh", "w") as f:
        f.write("for i in 1 2 3 4 5; do (exit $i); done\n")
    with Gdb(recordings.of("/bin/sh forks.sh")) as gdb:
        gdb.do("catch fork", "catch syscall clone")
        there = []
        while "No more reverse-execution history" not in (said := gdb.do("continue")):
            there.append((gdb.where().text, "forked" in said))
        check(gdb, sum(forked for _, forked in there) > 1, "too few forks")
        gdb.do("seek end")
        back = []
        while "No more reverse-execution history" not in (said := gdb.do("reverse-continue")):
            back.append((gdb.where().text, "forked" in said))
        forks = lambda stops: sorted(place for place, forked in stops if forked)
        check(gdb, forks(back) == forks(there), f"there {forks(there)}, back {forks(back)}")


@scenario()
def interrupt(recordings):
    """Ctrl-C, forwards and backwards, in the middle of a search; everything still works behind it."""
    recording = recordings.of("long 400000")
    with Gdb(recording) as gdb:
        gdb.do("break main", "continue", "delete", "watch never")
        main = gdb.where()
        for command in ("continue", "reverse-continue"):
            if command == "reverse-continue":
                gdb.do("seek end")
            gdb.send(command)
            time.sleep(0.4)
            gdb.interrupt()
            said = gdb.do("p 1")
            if "SIGINT" not in said:
                gdb.fail(f"{command}: not interrupted: {said}")
            at = gdb.where()
            gdb.do("reverse-stepi", "stepi")
            check(gdb, gdb.where() == at, "another place after a step back and a step")
        gdb.do(f"seek {main.text}")
        check(gdb, gdb.where() == main, "seek leads elsewhere")


@scenario()
def conditions_seldom_true(recordings):
    """Twenty thousand hits whose condition is false, there and back: neither gdb nor anybody else is asked at each."""
    with Gdb(recordings.of("long 1 20000")) as gdb:
        gdb.do("break visit if i == 19000")
        gdb.expect("continue", "visit (i=19000)")
        at = gdb.where(["i"])
        gdb.do("condition 1 i == 3000")
        gdb.expect("reverse-continue", "visit (i=3000)")
        gdb.do("condition 1 i % 8000 == 3000 && state != 0")
        gdb.expect("continue", "visit (i=11000)")
        gdb.expect("continue", "visit (i=19000)")
        check(gdb, gdb.where(["i"]) == at, "another place")
        gdb.expect("reverse-continue", "visit (i=11000)")
        gdb.do("hbreak visit if i == 10000")
        gdb.expect("reverse-continue", "visit (i=10000)")
        gdb.do("condition 1")
        gdb.expect("reverse-continue", "visit (i=9999)")


def processor_time(pid):
    """Of a process and all that it has started, in seconds."""
    total, left = 0, [pid]
    while left:
        p = left.pop()
        try:
            with open(f"/proc/{p}/stat") as f:
                total += sum(map(int, f.read().rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")
            with open(f"/proc/{p}/task/{p}/children") as f:
                left += map(int, f.read().split())
        except OSError:
            pass
    return total


@scenario(quick=True)
def conditions_cost_little(recordings):
    """A breakpoint that is passed needs no step: three hundred thousand of them took 13 s of processor time."""
    with Gdb(recordings.of("long 1 300000")) as gdb:
        gdb.do("break main", "continue", "delete", "break visit if i == 299990")
        before = processor_time(gdb.process.pid)
        gdb.expect("continue", "visit (i=299990)")
        at = gdb.where(["i"])
        took = processor_time(gdb.process.pid) - before
        check(gdb, took < 4, f"{took} s of processor time")
        gdb.do("seek end")
        gdb.expect("reverse-continue", "visit (i=299990)")
        check(gdb, gdb.where(["i"]) == at, "another place on the way back")


@scenario(quick=True)
def conditions_on_kinds(recordings):
    """bool and enumerations in conditions, which gdb cannot translate, and would evaluate itself at each of thousands of hits."""
    with Gdb(recordings.of("kinds")) as gdb:
        if int(gdb.value("$_gdb_major")) < 13:
            return
        gdb.do("break visit if !last && c == RED")
        for command, condition, n in (("continue", None, 5000), ("continue", "last", 10000), ("continue", "s->done == true", 20000),
                                      ("reverse-continue", "s->mode == Mode::ON", 15000),
                                      ("reverse-continue", "s->flags[2] && !last && s->color != BLUE", 12000),
                                      ("continue", "s->color == BLUE && s->n > 3", 25000)):
            if condition:
                gdb.do(f"condition 1 {condition}")
            gdb.expect("info breakpoints", "target evals")
            gdb.expect(command, "visit (")
            check(gdb, gdb.value("s->n") == str(n), f"not at {n}")
        gdb.do('condition 1 $_streq("a", "b") || !last')
        gdb.expect("info breakpoints", 'stop only if $_streq("a", "b") || !last (host evals)')


# ---- ways to get there ----

def wait_for(path, what, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with open(path) as f:
            text = f.read()
        if what in text:
            return text
        time.sleep(0.05)
    raise Wrong(f"{path}: no {what!r} in {text!r}")


class Server:
    """`reprise replay -s 0`."""

    def __init__(self, recording, *args):
        self.path = os.path.join(os.getcwd(), "server-%d-%d" % (os.getpid(), id(self)))
        with open(self.path, "w") as out:
            self.process = subprocess.Popen([REPRISE, "replay", "-s", "0", *args, recording], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out, env=environment())
        text = wait_for(self.path, "extended-remote")
        self.address = re.search(r"extended-remote (\S+)", text).group(1)
        self.script = re.search(r"gdb -x (\S+)", text).group(1)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()


def plain_gdb(*args):
    return Gdb(command=["gdb", "-q", "-nx", *args])


@scenario()
def reconnect(recordings):
    with Server(recordings.of("steps"), "-e") as server:
        with plain_gdb() as gdb:
            gdb.do(f"target extended-remote {server.address}", "break insert")
            gdb.expect("reverse-continue", "insert (key=40)")
            gdb.do("disconnect")
            gdb.quit()
        with plain_gdb("-x", server.script) as gdb:
            gdb.expect("p key", "= 40")
            at = gdb.where(["key"])
            gdb.expect("detach", "detached")
            gdb.quit()
        with plain_gdb("-x", server.script) as gdb:
            check(gdb, gdb.where(["key"]) == at, "detached from another place")
            gdb.process.kill() # a debugger that dies
            gdb.process.wait()
        with plain_gdb() as gdb:
            gdb.do(f"target remote {server.address}")
            gdb.expect("p key", "= 40")
            gdb.do("kill")
            gdb.quit()
        server.process.wait(10)


@scenario(quick=True)
def command_files(recordings):
    recording = recordings.of("steps")
    with open("commands-file", "w") as f:
        f.write("break total\ncontinue\np counter\n")
    p = subprocess.run([REPRISE, "replay", "-x", "commands-file", recording, "--", "-nx", "-batch"], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, env=environment(), timeout=60)
    if "Breakpoint 1, total" not in p.stdout or "= 1000" not in p.stdout:
        raise Wrong("-x: " + p.stdout + p.stderr)
    with Gdb(recording) as gdb:
        gdb.do("break total", "continue")
        at = gdb.where(["counter"])
    with Gdb(recording, args=["-g", at.text]) as gdb:
        check(gdb, gdb.where(["counter"]) == at, "-g leads elsewhere")
        check(gdb, gdb.quit() == 0, "gdb's status")


@scenario(quick=True)
def machine_interface(recordings):
    """What VS Code's adapter sends, in this order (docs/debugger.md)."""
    with Server(recordings.of("threads")) as server:
        program = os.path.join(os.environ["BUILD"], "gdb", "threads")
        with Gdb(command=["gdb", "-nx", "--interpreter=mi"], is_mi=True) as gdb:
            def mi(command, *wants, until="^"):
                token = str(1000 + len(gdb.log))
                gdb.send(token + command)
                said = gdb.read_until(f"{token}{until}") + gdb.read_until("\n")
                gdb.log.append(command + " -> " + said[-600:])
                for want in wants:
                    if want not in said:
                        gdb.fail(f"{command}: no {want}")
                return said

            def stopped(*wants):
                said = gdb.read_until("*stopped") + gdb.read_until("\n")
                gdb.log.append(said[-600:])
                for want in wants:
                    if want not in said:
                        gdb.fail(f"stopped: no {want}: {said[-300:]}")

            for c in ("-gdb-set mi-async on", "-gdb-set target-async on", "-enable-pretty-printing", "-gdb-set remotetimeout 100000",
                      "-gdb-set breakpoint always-inserted on", "-environment-cd /tmp", f"-file-exec-and-symbols {program}",
                      "-list-features", "-list-target-features"):
                mi(c)
            mi(f"-target-select extended-remote {server.address}", "connected")
            mi("-list-target-features", "reverse")
            mi("-break-insert -f take_turn", "bkpt=")
            mi("-exec-continue", "running")
            stopped('reason="breakpoint-hit"', 'func="take_turn"')
            mi("-thread-info", 'name="worker-')
            mi("-stack-list-frames 0 1000", 'func="run"')
            mi("-stack-select-frame 0")
            mi("-stack-list-variables 0", 'name="me"')
            mi("-var-create - * me", 'name="var1"', 'type="int"')
            mi("-data-evaluate-expression turn", 'value="')
            mi("-exec-next", "running")
            stopped('reason="end-stepping-range"')
            mi("-var-update 1 var1")
            mi("-exec-step --reverse", "running")
            stopped()
            mi("-exec-continue --reverse", "running")
            stopped()
            mi("-exec-interrupt")
            mi("-data-list-register-names", '"rip"')
            mi("-data-list-register-values x 16")
            mi("-data-disassemble -s $pc -e $pc+16 -- 2", "asm_insns")
            mi("-data-read-memory-bytes &turn 4", "contents")
            mi("-break-delete 1")
            mi("-exec-continue", "running")
            stopped('func="__GI__exit"', 'name="status",value="0"')
            mi("-gdb-exit")


@scenario()
def text_interface(recordings):
    """gdb's TUI, in a terminal."""
    if not shutil.which("tmux"):
        raise Skipped("no tmux")
    session = "reprise-tui-%d" % os.getpid()
    tmux = ["tmux", "-L", session]
    env = dict(environment(), TERM="screen")
    command = f"{REPRISE} replay -q {recordings.of('steps')} -- -nx -tui"
    subprocess.run([*tmux, "new-session", "-d", "-s", session, "-x", "100", "-y", "40", command], env=env, check=True)
    try:
        def screen_has(*wants):
            for _ in range(200):
                text = subprocess.run([*tmux, "capture-pane", "-p", "-t", session], capture_output=True, text=True).stdout
                if all(w in text for w in wants):
                    return
                time.sleep(0.05)
            raise Wrong(f"the screen lacks {wants}:\n{text}")

        def type_in(line):
            subprocess.run([*tmux, "send-keys", "-t", session, line, "Enter"], check=True)

        screen_has("(reprise)")
        type_in("break total")
        type_in("continue")
        screen_has("int total(void)", "Breakpoint 1, total")
        type_in("reverse-finish")
        screen_has("Run back to call", "printf(")
    finally:
        subprocess.run([*tmux, "kill-server"])


@scenario()
def lldb(recordings):
    if not shutil.which("lldb"):
        raise Skipped("no lldb")
    program = os.path.join(os.environ["BUILD"], "gdb", "threads")
    with Server(recordings.of("threads")) as server:
        commands = ["settings set plugin.process.gdb-remote.packet-timeout 60", f"gdb-remote {server.address}", "breakpoint set -n take_turn",
                    "continue", "bt", "register read rip", "thread list", "frame variable me", "stepi", "next", "p turn",
                    "breakpoint delete -f", "process plugin packet monitor when", "detach", "quit"]
        args = [w for c in commands for w in ("-o", c)]
        p = subprocess.run(["timeout", "-k", "2", "90", "lldb", "-b", "-x", program, *args], capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, env=environment())
        at = 0
        for want in ("stop reason = breakpoint 1.1", "frame #0", "take_turn(me=1)", "frame #1", "run(arg=", "rip = 0x", "thread #1",
                     "(int) me = 1", "stop reason = instruction step", "stop reason = step over", "Position".encode().hex()):
            found = p.stdout.find(want, at)
            if found < 0:
                raise Wrong(f"lldb: no {want!r} in:\n{p.stdout[-6000:]}{p.stderr[-500:]}")
            at = found

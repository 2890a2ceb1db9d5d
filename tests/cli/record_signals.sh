#!/bin/bash
# Signals and job control: the controller is not in the way.
. "$TESTS/cli/fake.sh"
cat >signals.py <<'PY'
import os, pty, signal, subprocess, sys, time
reprise = sys.argv[1]
failures = 0

def wrong(*words):
    global failures
    failures += 1
    print(*words)

def state(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "gone"

def until(what, condition):
    for _ in range(500):
        if condition():
            return True
        time.sleep(0.01)
    wrong(what)
    return False

def child_of(pid):
    return int((open(f"/proc/{pid}/task/{pid}/children").read().split() + ["0"])[0])

def start(*words):
    """In a session of its own, with a terminal."""
    pid, tty = pty.fork()
    if pid == 0:
        os.execv(reprise, [reprise, "record", "true", "say", "ready", *words])
    text = b""
    while b"ready" not in text:
        text += os.read(tty, 100)
    return pid, tty, child_of(pid)

def ended(pid, tty, want, what):
    try:
        while os.read(tty, 1000):
            pass
    except OSError:
        pass
    _, status = os.waitpid(pid, 0)
    os.close(tty)
    if status != want:
        wrong(what, "status", status, "not", want)

# keys
for key, sig in ((b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)):
    pid, tty, _ = start("events", "1", "64", "sleep", "5000")
    os.write(tty, key)
    ended(pid, tty, int(sig), f"key {key}")
# sent to the controller alone
for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    pid, tty, _ = start("events", "1", "64", "sleep", "5000")
    os.kill(pid, sig)
    ended(pid, tty, int(sig), f"{sig.name} to the controller")
# sent to the program alone
pid, tty, program = start("events", "1", "64", "sleep", "5000")
os.kill(program, signal.SIGTERM)
ended(pid, tty, int(signal.SIGTERM), "SIGTERM to the program")
# ignored by the program, because it was before: we do not die of it either
pid, tty = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.execv(reprise, [reprise, "record", "true", "say", "ready", "sleep", "500", "end", "768"])
os.read(tty, 100)
os.write(tty, b"\x03")
ended(pid, tty, 768, "SIGINT ignored")
# Ctrl-Z stops both, whoever continues us continues the program. The kernel stops jobs only if there is a shell.
shell, tty = pty.fork()
if shell == 0:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(reprise, [reprise, "record", "true", "say", "ready", "events", "1", "64", "sleep", "300", "end", "768"])
    os._exit(os.waitpid(job, 0)[1] >> 8)
os.read(tty, 100)
pid = child_of(shell)
program = child_of(pid)
os.write(tty, b"\x1a")
if until("Ctrl-Z: not both stopped", lambda: state(pid) == "T" and state(program) == "T"):
    time.sleep(0.1)
    if state(pid) != "T":
        wrong("Ctrl-Z: does not stay")
    os.kill(pid, signal.SIGCONT)
    until("SIGCONT to the controller: the program does not go on", lambda: state(program) != "T")
ended(shell, tty, 768, "Ctrl-Z")
# the program is continued alone
pid, tty, program = start("events", "1", "64", "kill", str(int(signal.SIGSTOP)), "end", "768")
if until("self-stop: not both stopped", lambda: state(pid) == "T" and state(program) == "T"):
    os.kill(program, signal.SIGCONT)
ended(pid, tty, 768, "continued alone")
# without a terminal a stopped program does not stop us
p = subprocess.Popen([reprise, "record", "true", "events", "1", "64", "kill", str(int(signal.SIGSTOP)), "end", "768"],
                     start_new_session=True)
if until("no terminal: no program", lambda: child_of(p.pid)):
    program = child_of(p.pid)
    until("no terminal: not stopped", lambda: state(program) == "T")
    time.sleep(0.1)
    if state(p.pid) == "T":
        wrong("no terminal: the controller stopped")
    os.kill(program, signal.SIGCONT)
if p.wait() != 3:
    wrong("no terminal: status", p.returncode)
sys.exit(failures > 0)
PY
python3 signals.py "$REPRISE" || wrong "signals"

# Who is left behind is counted once; with --wait nobody is.
expect 0 'reprise: 1 process goes on unrecorded' $record true events 3 64 daemon events 5 64 sleep 300 events 5 64
[ "$(facts latest left)" = 1 ] || wrong "left: $(facts latest left)"
expect 0 '' $record --wait true events 3 64 daemon events 5 64 sleep 300 events 5 64
expect 0 '' $replay --debug streams=2
sort out >sorted && [ "$(cat sorted)" = $'stream 0: 3 events, ended\nstream 1: 10 events, ended' ] || wrong "--wait: $(cat out)"
expect 0 '' timeout 20 $record --wait true events 3 64 daemon events 5 64 sleep 100 kill 9
# Who does not want to wait any longer interrupts it, when the first process has ended.
$record --wait true say first daemon sleep 60000 >fifo.out 2>err &
controller=$!
for _ in $(seq 500); do
    [ -s fifo.out ] && [ -z "$(cat /proc/$controller/task/$controller/children)" ] && break
    sleep 0.02
done
kill -TERM $controller
wait $controller || wrong "interrupted: status $?"
grep -q '1 process goes on unrecorded' err || wrong "interrupted: $(cat err)"
# The output is closed with the program's, not with ours.
$record --wait true say first daemon sleep 500 >fifo.out 2>/dev/null
[ "$(cat fifo.out)" = first ] || wrong "output: $(cat fifo.out)"
finish

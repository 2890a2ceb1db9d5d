"""Sessions on processes that share memory with others: a crash, changes, where values come from, and real programs."""

import json, os, re, shutil, socket, subprocess, sys, tempfile, time

from driver import REPRISE, Gdb, Wrong
from special import NO_MORE, Skipped, check, process_list, scenario


def there_and_back(gdb, values, most):
    """`continue` at most so often, then `reverse-continue` as often: the same stops."""
    stops = [gdb.where(values)]
    while len(stops) <= most and NO_MORE not in gdb.do("continue"):
        stops.append(gdb.where(values))
    check(gdb, len(stops) > most // 2, f"only {len(stops)} stops")
    if len(stops) > most:
        stops.pop() # gdb stands there
    gdb.do("reverse-continue")
    for stop in reversed(stops[1:]):
        check(gdb, gdb.where(values) == stop, f"there {stop}, back {gdb.where(values)}")
        gdb.do("reverse-continue")


@scenario(quick=True)
def share_crash(recordings):
    recording = recordings.of("shares crash")
    with Gdb(recording, args=["-e", "-p", str(process_list(recording)[1])]) as gdb:
        gdb.expect("bt", "crash", "in_turn", "run")
        crash = gdb.where(["shared->counter", "shared->last"])
        check(gdb, crash.values == ("4", "1"), "what is shared is not there")
        gdb.do("watch shared->counter")
        for want in ("3", "2", "1", "0"):
            gdb.expect("reverse-continue", f"New value = {want}")
        gdb.expect("reverse-continue", NO_MORE)
        gdb.do("delete", "seek end")
        check(gdb, gdb.where(["shared->counter", "shared->last"]) == crash, "the end is elsewhere")


def shown_values(recording, stream):
    """Accesses to pages that are nobody's, and how many of them a debugger shows."""
    dump = subprocess.run([REPRISE, "dump", "--json", "--stream", str(stream), recording], capture_output=True, text=True, check=True).stdout
    events = [e for e in map(json.loads, dump.splitlines()) if e["kind"] == "INSN" and e.get("insn") == "shared"]
    return len(events), sum(e["insn_flags"] & 1 for e in events)


@scenario(quick=True)
def share_contended(recordings):
    """A page that is nobody's shows what the process itself saw and left in it, forwards, backwards and behind a restore."""
    for kind in ("inherited", "memfd"):
        recording = recordings.of(f"contends {kind}")
        accesses, shown = shown_values(recording, 1)
        if accesses < 100:
            raise Skipped(f"the processes hardly met: {accesses} values")
        with Gdb(recording, args=["-e", "-p", str(process_list(recording)[1])]) as gdb:
            check(gdb, shown == accesses, f"{shown} of {accesses} values are shown")
            end = gdb.where(["shared->counter", "shared->place[1]"])
            gdb.do("break saw if shared->counter != seen")
            gdb.expect("reverse-continue", NO_MORE)
            start = gdb.where(["shared->counter", "shared->place[1]"])
            gdb.expect("continue", "SIGSEGV")
            check(gdb, gdb.where(["shared->counter", "shared->place[1]"]) == end, "the end that was restored is another")
            gdb.do("delete", "seek start", "watch shared->place[1]", "ignore $bpnum 1000000", "continue")
            gdb.expect("info breakpoints", "already hit 3000 times")
            gdb.do("delete", "seek start")
            check(gdb, gdb.where(["shared->counter", "shared->place[1]"]) == start, "the start is another")


@scenario()
def share_changes(recordings):
    recording = recordings.of("shares memfd")
    with Gdb(recording, args=["-p", str(process_list(recording)[1])]) as gdb:
        gdb.do("break in_turn", "continue", "continue")
        at = gdb.where(["shared->counter", "shared->other_page"])
        gdb.expect("print peek_other(5)", "= ", str(int(at.values[1]) + 5))
        gdb.do("set var shared->counter = 100", "set var shared->other_page = 200")
        gdb.expect("print peek_other(5)", "= 205")
        gdb.do("continue", "reverse-continue")
        check(gdb, gdb.where(["shared->counter", "shared->other_page"]) == at, "changes stayed")


@scenario()
def share_why(recordings):
    recording = recordings.of("shares inherited")
    with Gdb(recording, args=["-p", str(process_list(recording)[1])]) as gdb:
        gdb.do("break in_turn", "continue", "continue", "finish")
        gdb.expect("why own", "in_turn", "shares.c")
        gdb.do("break in_turn", "continue")
        said = gdb.do("why shared->last") # where processes contend, it is nobody's page
        check(gdb, re.search("an input: it came with a page that is shared with other processes|= 0x1, as this process left it", said), said)


PYTHON = """
import multiprocessing as mp
def work(v, a, q, n):
    for i in range(n):
        with v.get_lock():
            v.value += 1
        a[i % len(a)] += i
    q.put(n)
mp.set_start_method("fork")
v, a, q = mp.Value("i", 0), mp.Array("d", 16), mp.Queue()
ps = [mp.Process(target=work, args=(v, a, q, 20)) for _ in range(2)]
for p in ps: p.start()
s = sum(q.get() for _ in ps)
for p in ps: p.join()
print(v.value, s, sum(a))
"""


@scenario()
def share_python(recordings):
    python = sys.executable # what is found by its name may be a script that finds it
    script = os.path.join(os.getcwd(), "share.py")
    open(script, "w").write(PYTHON)
    recording = recordings.of(f"{python} -S -E {script}")
    for pid in process_list(recording)[1:3]:
        with Gdb(recording, args=["-p", str(pid)]) as gdb:
            gdb.do("break sem_post", "break sem_trywait")
            there_and_back(gdb, ["$rdi", "*(long *)$rdi"], 12)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def request(port):
    with socket.create_connection(("127.0.0.1", port), 20) as s:
        s.sendall(b"GET /status HTTP/1.0\r\n\r\n")
        return b"".join(iter(lambda: s.recv(4096), b""))


@scenario()
def share_nginx(recordings):
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not nginx:
        raise Skipped("no nginx")
    with tempfile.TemporaryDirectory() as d:
        port, recording = free_port(), os.path.join(os.getcwd(), "rec-nginx")
        paths = "".join(f"{what}_temp_path {d}/{what}; " for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        open(f"{d}/conf", "w").write(
            f"worker_processes 2; daemon off; pid {d}/pid; error_log {d}/error; events {{ worker_connections 64; }}\n"
            f"http {{ access_log off; {paths} server {{ listen 127.0.0.1:{port}; location /status {{ stub_status; }} }} }}\n")
        p = subprocess.Popen(["timeout", "-k", "2", "100", REPRISE, "record", "-o", recording, "--", nginx, "-e", f"{d}/error", "-p", d, "-c", f"{d}/conf"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(200):
            try:
                request(port)
                break
            except OSError:
                time.sleep(0.1)
        for _ in range(40):
            request(port)
        subprocess.run(["kill", "-QUIT", open(f"{d}/pid").read().strip()])
        if p.wait(60) != 0:
            raise Wrong("nginx cannot be recorded: " + p.stderr.read().decode())
    for pid in process_list(recording)[1:3]:
        with Gdb(recording, args=["-p", str(pid)]) as gdb:
            gdb.do("break accept4", "break ngx_event_accept")
            there_and_back(gdb, ["$rdi", "$rsp"], 10)
            gdb.do("delete", "seek end")
            gdb.expect("bt", "exit")

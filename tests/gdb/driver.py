"""A gdb on a recording, driven by commands, and what it says after each of them."""

import os, re, select, signal, subprocess, time

REPRISE = os.environ.get("REPRISE") or os.path.join(os.environ["BUILD"], "reprise")
MARK = "--done--"


class Wrong(Exception):
    pass


class Stop:
    """Where gdb stands: position, pc, thread, and the values of chosen expressions."""

    def __init__(self, position, pc, thread, values):
        self.text, self.pc, self.thread, self.values = position, pc, thread, values
        program, _, rest = position.rpartition(".")
        self.position = (int(program or 0), *map(int, rest.split(":")))

    def key(self):
        return (self.position, self.pc, self.thread, self.values)

    def place(self):
        return (self.position, self.pc, self.thread)

    def __eq__(self, other):
        return self.key() == other.key()

    def __repr__(self):
        return f"{self.text} pc {self.pc} thread {self.thread} {' '.join(self.values)}"


def environment():
    env = dict(os.environ, HOME=os.getcwd(), LC_ALL="C", TERM="dumb")
    for name in ("DEBUGINFOD_URLS", "XDG_RUNTIME_DIR"):
        env.pop(name, None)
    env["TMPDIR"] = "/tmp"
    return env


class Gdb:
    """`command` starts it; by default `reprise replay ARGS` on a recording."""

    def __init__(self, recording=None, args=(), gdb_args=(), command=None, timeout=100, is_mi=False):
        self.timeout = timeout
        self.text = ""
        command = command or [REPRISE, "replay", "-q", *args, recording, "--", "-nx", *gdb_args]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env=environment())
        self.log = []
        if not is_mi:
            self.do("set pagination off", "set width 0", "set confirm off", "set style enabled off")

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def fail(self, why):
        raise Wrong(why + "\n" + "\n".join(self.log[-8:]))

    def send(self, *commands):
        for c in commands:
            self.process.stdin.write(c.encode() + b"\n")
        self.process.stdin.flush()

    def read_until(self, what, timeout=None):
        """Everything up to `what`, which is taken, too."""
        end = time.monotonic() + (timeout or self.timeout)
        while what not in self.text:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.fail(f"nothing more after {timeout or self.timeout} s: {self.text[-500:]!r}")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                self.fail(f"gdb is gone: {self.text[-1000:]!r}")
            self.text += piece.decode("utf-8", "replace")
        at = self.text.index(what)
        said, self.text = self.text[:at], self.text[at + len(what):]
        return said

    def do(self, *commands):
        """What gdb prints at these commands, without prompts."""
        self.send(*commands, f"echo {MARK}\\n")
        said = self.read_until(MARK + "\n").replace("(reprise) ", "").replace("(gdb) ", "").replace("\n>", "\n").lstrip(">")
        self.log.append("; ".join(commands)[:300] + " -> " + said.strip()[:600])
        return said

    def value(self, expression):
        said = self.do(f"output {expression}").strip()
        return said

    def expect(self, command, *wants):
        """The command says these, in this order."""
        said, at = self.do(command), 0
        for want in wants:
            found = said.find(want, at)
            if found < 0:
                self.fail(f"{command}: not said: {want!r}")
            at = found + len(want)
        return said

    def where(self, values=()):
        queries = ["when", "output/x $pc"]
        for v in values:
            queries += ["echo \\n" + MARK[:3] + "\\n", f"output {v}"]
        said = self.do(*queries)
        got = re.match(r"Position (\S+), thread (\d+)\s+(0x[0-9a-f]+)", said)
        if not got:
            self.fail("no position: " + said)
        parts = [p.strip() for p in said.split("\n" + MARK[:3] + "\n")[1:]]
        return Stop(got.group(1), got.group(3), got.group(2), tuple(parts))

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def quit(self):
        self.send("quit")
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.fail("gdb does not quit")

#!/usr/bin/python3
"""What $RUN is under `run.sh --record`: records the command into $RECORDINGS and keeps a copy of its output for comparison.

The output goes through a pipe, with what goes to standard error if that is the same file: so it stays in order. This process ends
only when all of it has been passed on."""
import fcntl
import os
import select
import signal
import sys
import tempfile

where = tempfile.mkdtemp(dir=os.environ["RECORDINGS"])
command = [os.environ["REPRISE"], "record", *os.environ.get("RECORD_OPTIONS", "").split(), "-o", where + "/rec", "--", *sys.argv[1:]]
out, inner = os.pipe()
merged = os.path.sameopenfile(1, 2)
if merged:
    open(where + "/merged", "w").close()
# what the shell had ignored stays ignored; python itself ignores these two
for s in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(s, signal.SIG_DFL)
child = os.fork()
if child == 0:
    os.close(out)
    os.dup2(inner, 1)
    if merged:
        os.dup2(inner, 2)
    os.close(inner)
    try:
        os.execv(command[0], command)
    finally:
        os._exit(125)
os.close(inner)
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
    signal.signal(s, lambda s, frame: os.kill(child, s))

copy = open(where + "/out", "wb")
fcntl.fcntl(out, fcntl.F_SETFL, os.O_NONBLOCK)
status = None


def pass_on():
    """Everything that is there; False: there will be no more."""
    while True:
        try:
            data = os.read(out, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        copy.write(data)
        copy.flush()
        try:
            while data:
                data = data[os.write(1, data):]
        except BrokenPipeError:  # whoever reads has had enough: so hears the program
            open(where + "/cut", "w").close()
            return False


more = True
while more:
    ended, now = os.waitpid(child, os.WNOHANG)
    if ended:
        status = now
    more = pass_on()
    if status is not None:
        break
    if more:
        select.select([out], [], [], 0.02)
os.close(out)
if status is None:
    status = os.waitpid(child, 0)[1]
if os.WIFSIGNALED(status):
    signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) not in (9, 19) else None
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.WEXITSTATUS(status))

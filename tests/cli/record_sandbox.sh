#!/bin/bash
# Sandboxes: a seccomp filter as containers have it, which says EPERM to calls that it does not know (faccessat2, statx) or like
# (userfaultfd, ptrace, personality); a kernel that has no newer calls, or does not find descriptors that are executed (TOMOYO, without
# /dev/fd); no /proc; blocked signals. The program runs, is recorded and replayed.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/recordings
cat >sandbox.py <<'PY'
import ctypes, os, struct, sys
EPERM, ENOENT, ENOSYS = 1, 2, 38
denied = {439: EPERM, 332: EPERM, 323: EPERM, 135: EPERM, 101: EPERM, 310: EPERM, 311: EPERM, 298: EPERM, 435: ENOSYS}
insns = [(0x20, 0, 0, 0)] # the call's number
if sys.argv[1] == "--old": # Linux 5.0
    del sys.argv[1]
    denied = {}
    insns += [(0x35, 0, 1, 424), (0x06, 0, 0, 0x50000 | ENOSYS)]
if sys.argv[1] == "--no-execveat":
    del sys.argv[1]
    denied = {322: ENOENT}
for nr, error in denied.items(): insns += [(0x15, 0, 1, nr), (0x06, 0, 0, 0x50000 | error)]
insns.append((0x06, 0, 0, 0x7fff0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in insns))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(insns), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program))) != 0: sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
PY
cat >work.sh <<'SH'
seq 1000 | sort -n | tail -1
(exit 3)
echo "$?"
SH
# check WRAPPER...: the same natively, under the engine, recorded and replayed
check() {
    expect 0 '' "$@" /bin/sh work.sh
    mv out native
    for way in 'run --' 'record -o rd --'; do
        rm -rf rd
        expect 0 '' "$@" "$REPRISE" $way /bin/sh work.sh
        cmp -s native out || wrong "$1: $way: $(cat out)"
    done
    expect 0 '' "$@" "$REPRISE" replay -a rd
    cmp -s native out || wrong "$1: replay: $(cat out)"
}
sandbox=(/usr/bin/python3 sandbox.py)
if "${sandbox[@]}" /bin/true; then
    check "${sandbox[@]}"
    check "${sandbox[@]}" --old
    check "${sandbox[@]}" --no-execveat
    # threads of the runtime's own do not keep descriptors of the program open
    cat >pipe.py <<'PY'
import os, time
r, w = os.pipe()
end = time.monotonic() + 2
while time.monotonic() < end: pass
os.close(w)
print(os.read(r, 1))
PY
    rm -rf rd
    expect 0 '' "${sandbox[@]}" --old "$REPRISE" record --debug ckpt-stretch=0 -o rd -- /usr/bin/python3 pipe.py
    grep -q "^b''" out || wrong "pipe.py: $(cat out)"
    "$REPRISE" info rd | grep -q '^checkpoints *[1-9]' || wrong "no checkpoints: $("$REPRISE" info rd)"
fi
bare() { unshare -rUm /bin/sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$@"; }
if bare /bin/true 2>/dev/null; then check bare; fi

# all signals blocked, faults among them
blocked=(/usr/bin/python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])')
check "${blocked[@]}"
# no memory may be written and executed: one line says so
forbidden=(/usr/bin/python3 -c 'import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) != 0: sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])')
if "${forbidden[@]}" /bin/true; then
    expect 125 'reprise: *PR_SET_MDWE*' "${forbidden[@]}" "$REPRISE" run -- /bin/true
fi
finish

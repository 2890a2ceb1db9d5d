#!/bin/bash
# record --check: there are hashes of memory in the recording, and replay --verify agrees; also of a process that changed its user.
export REPRISE_DIR=$PWD/recordings
failed=0
wrong() { echo "$*"; failed=1; }

check() { # NAME SETUP: a process that makes 400 calls
    "$REPRISE" record --check -o "$1" -- /usr/bin/python3 -S -E -c "import os
$2
for i in range(400): os.getppid()" || wrong "$1: status $?"
    "$REPRISE" replay -a --verify "$1" || wrong "$1: replay $?"
    hashes=$("$REPRISE" dump "$1" | grep -c ' HASH ')
    empty=$("$REPRISE" dump "$1" | grep ' HASH ' | grep -c ' 0 bytes')
    [ "$hashes" -ge 5 ] && [ "$empty" = 0 ] || wrong "$1: $hashes hashes, $empty of them empty"
}

check plain 'pass'
[ "$(id -u)" != 0 ] || check user 'os.setgid(65534); os.setuid(65534)'

# What sanitizers reserve, 14 TB and more, is nearly all holes, which take no time (Linux 6.7).
sparse="import mmap; m = mmap.mmap(-1, 14 << 40, flags=mmap.MAP_PRIVATE | 0x4000); m[5] = m[7 << 40] = m[-1] = 1"
if /usr/bin/python3 -S -E -c "$sparse" 2>/dev/null && [ "$(printf '6.7\n%s\n' "$(uname -r)" | sort -V | head -1)" = 6.7 ]; then
    check sparse "$sparse"
fi

# What goes to another process's memory, as a debugger puts its breakpoints there, changes nothing at that address here.
check other "import time
here = int(next(l for l in open('/proc/self/maps') if ' r-xp ' in l).split('-')[0], 16) + 4096 * 5
child = os.fork()
if not child: time.sleep(100)
mem = os.open('/proc/%d/mem' % child, os.O_RDWR)
assert os.pwrite(mem, b'x', here) == 1
os.lseek(mem, here + 1, 0)
assert os.write(mem, b'x') == 1
os.kill(child, 9)
os.wait()"

# Nor does what another process gets by ptrace() or process_vm_writev(), wherever it is allowed.
check poked "import ctypes, signal
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long] * 2 + [ctypes.c_void_p] * 2
here = int(next(l for l in open('/proc/self/maps') if ' r-xp ' in l).split('-')[0], 16) + 4096 * 5
there = int(next(l for l in open('/proc/self/maps') if ' rw-p ' in l and '.so' in l).split('-')[0], 16)
child = os.fork()
if not child:
    libc.ptrace(0, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, 0)
assert libc.ptrace(4, child, here, 0x1234) == 0
word = ctypes.create_string_buffer(8)
pieces = [(ctypes.c_long * 2)(a, 8) for a in (ctypes.addressof(word), there)]
assert libc.process_vm_writev(child, pieces[0], 1, pieces[1], 1, 0) == 8
os.kill(child, 9)
os.wait()"

# The last page of the program's data is the process's own from the start, whether the loader had to clear some of it or not.
"$REPRISE" record --check -o data -- "$BUILD/guest/mem_data_end" >/dev/null || wrong "data: status $?"
"$REPRISE" replay -a --verify data >/dev/null || wrong "data: replay $?"

# Many calls of a process with much memory: hashes take a fifth of its time, not more.
"$REPRISE" record --check -o large -- /usr/bin/python3 -S -E -c "import os
memory = b'x' * (200 << 20)
for i in range(20000): os.getppid()" || wrong "large: status $?"
hashes=$("$REPRISE" dump large | grep -c ' HASH ')
[ "$hashes" -ge 5 ] && [ "$hashes" -le 100 ] || wrong "large: $hashes hashes"
"$REPRISE" replay -a --verify large || wrong "large: replay $?"
exit $failed

#!/bin/bash
# The core of a program that dies of a signal is the program's, as natively: its registers, stack and libraries, not the runtime's.
. "$(dirname "$0")/expect.sh"
export REPRISE_DIR=$PWD/recordings
command -v gdb >/dev/null || { echo "gdb is not installed"; exit 77; }
case $(cat /proc/sys/kernel/core_pattern) in core) ;; *) echo "cores are somebody else's here"; exit 77 ;; esac
ulimit -c unlimited || { echo "cores are not allowed"; exit 77; }

look() { # look HOW: what the core in this directory shows
    local core
    core=$(ls core core.* 2>/dev/null | head -1)
    [ -n "$core" ] || { echo "no core"; return; }
    gdb -nx -q -batch -ex 'set width 0' -ex 'bt -frame-info location' -ex 'p $_siginfo.si_signo' -ex 'p $xmm7.v2_double' -ex 'p $r14 == 0x1234567 || $r14 == 0x7654321 || $r14 == 0x1a2b3c4' \
        -ex 'x/i $pc' -ex 'info threads' "$BUILD/guest/dumps" "$core" 2>/dev/null |
        grep -E '^#|^\$|^=>|^[ *]+[0-9]+ +Thread' | sed -E 's/0x[0-9a-f]{6,}/ADDRESS/g; s/^[ *]+([0-9]+) +Thread.*/thread \1/'
    [ "$(stat -c %b "$core")" -lt 40000 ] || echo "the core has $(stat -c %b "$core") blocks on disk"
    rm -f "$core"
}

dies() { # dies HOW COMMAND...: runs it, sends it what it dies of if it waits for that; its status
    local how=$1 pid
    shift
    case $how in spins | waits) ;; *) "$@" $how >/dev/null 2>&1; return ;; esac
    : >out
    "$@" $how >out 2>/dev/null &
    while ! pid=$(grep . out); do sleep 0.05; done
    sleep 0.2
    kill -ABRT "$pid"
    wait $!
}

"$BUILD/guest/dumps" segv 2>/dev/null
look | grep -q '^\$3 = 1' || wrong "the registers of the native core are not known"
for how in segv abrt ill fpe quit thread spins waits; do
    dies $how "$BUILD/guest/dumps"
    status=$?
    look >native
    grep -q 'inner' native || wrong "$how, natively: $(cat native)"
    for verb in run record; do
        dies $how "$REPRISE" $verb -- "$BUILD/guest/dumps"
        [ $? = $status ] || wrong "$verb $how: another status than $status"
        look >here
        cmp -s native here || wrong "$verb $how: $(diff native here | head -8)"
    done
    "$REPRISE" replay -a >/dev/null 2>&1
    [ $? = $status ] || wrong "replay $how: another status than $status"
    [ -z "$(ls core* 2>/dev/null)" ] || wrong "a replay leaves a core"
done
finish

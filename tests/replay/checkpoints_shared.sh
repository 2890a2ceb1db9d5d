#!/bin/bash
# Checkpoints of processes that share memory: at each of them, and at the end, all registers and memory are the same whether it is
# reached by a restore or by a replay from the start. The log has all that came from other processes: nothing need be gathered.
set -u
. "${0%/*}/restores.sh"

for what in inherited memfd file segment late; do
    timeout -k 5 60 "$REPRISE" record --checkpoint-interval 0.1 -o "rd/$what" -- "$BUILD/replay/sharers" $what 0.7 $([ $what = memfd ] && echo threads) >out 2>&1
    grep -q "^signal 11, from the parent" out || wrong "$what: $(cat out)"
    timeout -k 5 60 "$REPRISE" replay -a --verify "$what" >again 2>&1
    [ $? -ne 125 ] || wrong "$what: $(tail -1 again)"
    for pid in $("$REPRISE" ps "$what" | awk 'NR > 1 { print $1 }'); do compare $what 1 -p "$pid"; done
    [ ! -e "rd/$what/pages" ] || wrong "$what: the log did not have all that the processes share"
done

# pages that become nobody's: what the child saw and left in them is in the checkpoint in front of its crash
for kind in inherited memfd; do
    timeout -k 5 60 "$REPRISE" record --checkpoint-interval 0.1 -o "rd/contended-$kind" -- "$BUILD/gdb/contends" $kind 300 >out 2>&1 || wrong "contended, $kind: $(cat out)"
    timeout -k 5 60 "$REPRISE" replay -a --verify "contended-$kind" >again 2>&1 || wrong "contended, $kind: $(tail -1 again)"
    compare "contended-$kind" 1 -p "$("$REPRISE" ps "contended-$kind" | awk 'NR == 3 { print $1 }')"
done

# files that are mapped in part, or only to be read, and changed by calls
for size in small large; do
    timeout -k 5 60 "$REPRISE" record --debug ckpt-stretch=0 --checkpoint-interval 0.1 -o "rd/$size" -- "$BUILD/replay/windows" $([ $size = large ] && echo 5 || echo 2.5) ${size#small} >out 2>&1
    grep -q "^done" out || wrong "$size: $(cat out)"
    timeout -k 5 60 "$REPRISE" replay -a --verify "$size" >again 2>&1 || wrong "$size: $(tail -1 again)"
    for pid in $("$REPRISE" ps "$size" | awk 'NR > 1 { print $1 }'); do compare $size 2 -p "$pid"; done
    [ ! -e "rd/$size/pages" ] || wrong "$size: the log did not have all that the processes share"
done

# shared memory that was written and is zero again: to compare it takes as long as its size says, not the square of that
zeroes="import mmap, os, time
size = 32 << 20
fd = os.memfd_create('zeroes')
os.ftruncate(fd, size)
memory = mmap.mmap(fd, size)
def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
compute(0.6)
memory[:] = b'x' * size
compute(0.4)
memory[:] = bytes(size)
compute(0.4)"
timeout -k 5 60 "$REPRISE" record --debug ckpt-stretch=0 --checkpoint-interval 0.1 -o rd/zeroes -- /usr/bin/python3 -S -E -c "$zeroes" >out 2>&1 || wrong "zeroes: $(cat out)"
timeout -k 5 60 "$REPRISE" replay -a --verify zeroes >again 2>&1 || wrong "zeroes: $? $(tail -1 again)"

# files that are mapped privately while others change them
for how in shared calls; do
    timeout -k 5 60 "$REPRISE" record --debug ckpt-stretch=0 --checkpoint-interval 0.1 -o "rd/$how" -- "$BUILD/replay/borrowers" $how 2.5 >out 2>&1
    grep -q "^done" out || wrong "$how: $(cat out)"
    timeout -k 5 60 "$REPRISE" replay -a --verify "$how" >again 2>&1 || wrong "$how: $(tail -1 again)"
    pid=$("$REPRISE" ps "$how" | awk 'NR == 3 { print $1 }')
    compare $how 1 -p "$pid"
    [ ! -e "rd/$how/pages" ] || wrong "$how: the log did not have all that the processes share"
done
exit $bad

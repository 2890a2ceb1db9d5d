#!/bin/bash
# Rings that the kernel uses by itself (packets to be sent, samples of performance events) are refused while recording, with one line
# that says so; the program goes on without, and is replayed.
set -u
export REPRISE_DIR=$PWD/rd
tried=77

ring() { # PROGRAM LINE ARG...: what it prints without a ring is in the file `expected`
    "$REPRISE" record -o "rd/$1" -- "$BUILD/guest/$1" "${@:3}" >out 2>err || { cat out err; exit 1; }
    cmp expected out || exit 1
    [ "$(grep -c "$2" err)" = 1 ] && [ "$(wc -l <err)" = 1 ] || { cat err; exit 1; }
    "$REPRISE" replay -a "$1" >out 2>err || { cat err; exit 1; }
    cmp expected out || exit 1
    tried=0
}

printf 'no ring\nall checks passed\n' >expected
"$BUILD/guest/net_packets" send >/dev/null
[ $? = 77 ] || ring net_packets 'rings of packets to be sent' send
"$BUILD/guest/sys_perf_ring" >/dev/null
[ $? = 77 ] || ring sys_perf_ring 'rings of performance events'
exit $tried

#!/bin/bash
# record --cpu: the program sees the extended state of a processor of that level wherever it looks, and nothing writes more than that.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/rd
program=$BUILD/guest/cpu_level
"$program" >native
level() { # level NAME LINES: what is seen, recorded and replayed
    expect 0 '' "$REPRISE" record --cpu $1 -- "$program"
    cp out recorded
    [ "$(cat recorded)" = "$2" ] || wrong "$1: $(cat recorded)"
    expect 0 '' "$REPRISE" replay -a
    cmp -s out recorded || wrong "$1, replayed: $(cat out)"
}
v2='cpuid: no xsave
avx 0 avx2 0 avx512f 0
frame: without extended state'
v3='cpuid: 832 bytes, components 7, xgetbv 7
xsave: known components, within its size
avx 1 avx2 1 avx512f 0
frame: 832 bytes, components 7'
level v2 "$v2"
expect 0 '' "$REPRISE" info
grep -q '^needs  *cx16 .*sse4_2' out && ! grep -q avx out || wrong "info: $(grep -A9 ^needs out)"
if grep -q 'avx2 1' native; then level v3 "$v3"; fi
# without a level: as natively
expect 0 '' "$REPRISE" record -- "$program"
cmp -s out native || wrong "all: $(cat out), natively $(cat native)"
expect 0 '' "$REPRISE" replay -a
cmp -s out native || wrong "all, replayed: $(cat out)"
finish

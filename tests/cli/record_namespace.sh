#!/bin/bash
# Processes in a pid namespace of their own, also a nested one, are known to the controller by other numbers than their own. The
# kernel kills what is left when the first of a namespace ends: that is seen, and nothing is waited for.
. "$TESTS/cli/expect.sh"
flags=-pf
unshare $flags true 2>/dev/null || flags=-rpf
unshare $flags true 2>/dev/null || exit 77
for command in 'sleep 1000 & sleep 0.3; echo done' \
    'sleep 1000 & unshare -pf sh -c "sleep 1000 & sleep 0.3; echo inner"; echo done'; do
    rm -rf rec
    expect 0 '' timeout -k 1 40 "$REPRISE" record --wait -o rec -- unshare $flags sh -c "$command"
    cp out recorded
    expect 0 '' "$REPRISE" replay -a rec
    cmp -s out recorded || wrong "replay: $(cat out)"
    grep -q done out || wrong "recorded: $(cat out)"
    rm -rf rec
    expect 0 '' timeout -k 1 40 "$REPRISE" record -o rec -- unshare $flags sh -c "$command"
done
finish

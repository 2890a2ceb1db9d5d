#!/bin/bash
# Recording stops because the log has reached its limit, while processes share memory: the program does not notice, and processes
# that are forked behind that share it with those that were recorded.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/recordings
for i in 1 2 3; do
    expect 0 'reprise: recording stopped: the log has reached *' \
        "$REPRISE" record --limit 50K -o "stopped-$i" -- "$BUILD/shared/unrecorded" 150000
    [ "$(cat out)" = 'all steps are there' ] || wrong "recording $i: $(cat out)"
done
finish

#!/bin/bash
# Translations of far code need not lie at replay where they lay while recording: the program's memory goes where it was.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/recordings
expect 0 '' "$REPRISE" record -o rd -- "$BUILD/guest/far_windows"
mv out recorded
[ "$(cat recorded)" = "$("$BUILD/guest/far_windows")" ] || wrong "recorded: $(cat recorded)"
for size in 512 4096; do
    expect 0 '' "$REPRISE" replay -a --debug cachesize=$size rd
    cmp -s recorded out || wrong "cachesize=$size: $(cat out)"
done
finish

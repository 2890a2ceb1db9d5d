#!/bin/bash
# A process computes for long in front of its output, which others have waited for: at replay, where nobody waits for a process, the
# output comes in front of theirs all the same.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/recordings
cat >late.py <<'PY'
import os, time
if os.fork() == 0:
    while time.process_time() < 12: sum(range(100000))
    os.write(1, b"first\n")
    os._exit(0)
os.wait()
os.write(1, b"second\n")
PY
expect 0 '' "$REPRISE" record -o late -- /usr/bin/python3 -S -E late.py
[ "$(cat out)" = "$(printf 'first\nsecond')" ] || wrong "recorded: $(cat out)"
expect 0 '' "$REPRISE" replay -a late
[ "$(cat out)" = "$(printf 'first\nsecond')" ] || wrong "replayed: $(cat out)"
finish

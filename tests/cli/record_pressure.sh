#!/bin/bash
# Many events, many processes: nothing is lost, memory stays bounded.
. "$TESTS/cli/fake.sh"
expect 0 '' $record true events 40000 4096
expect 0 '' $replay
said 'stream 0: 40000 events, ended'
for size in 40 48 1000 65536; do
    size=$((size / 8 * 8))
    expect 0 '' $record true events 3000 $size
    expect 0 '' $replay
    said 'stream 0: 3000 events, ended'
done
# A writer that is slower than the program: the program waits, nothing is lost.
python3 - "$REPRISE" <<'PY' || wrong "a stopped controller"
import os, signal, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], "record", "true", "say", "x", "events", "2000", "4096", "end", "512"], stdout=subprocess.PIPE)
p.stdout.read(1)
os.kill(p.pid, signal.SIGSTOP)
time.sleep(0.5)
os.kill(p.pid, signal.SIGCONT)
sys.exit(p.wait() != 2)
PY
expect 2 '' $replay
said 'stream 0: 2000 events, ended'
# Streams one after the other use rings again; all of them are there.
words=
for i in $(seq 60); do words="$words events 2 64 child"; done
expect 0 '' $record true $words events 9 64
[ "$(facts latest streams)" = 61 ] || wrong "$(facts latest streams) streams, not 61"
# Two recordings at once.
$record -o a true events 20000 4096 &
$record -o b true events 20000 4096
wait $!
for r in a b; do
    expect 0 '' $replay ./$r
    said 'stream 0: 20000 events, ended'
done
finish

#!/bin/bash
# Keeping a large file takes long. Who is told to end meanwhile ends, and the recording can be replayed.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/recordings
truncate -s 4T large 2>err || { cat err; exit 77; }

cat >map.py <<'PY'
import mmap, os, sys
print("maps", flush=True)
mmap.mmap(os.open("large", os.O_RDONLY), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
print("has mapped", flush=True)
PY

for signal in TERM INT; do
    rm -rf rd
    "$REPRISE" record -o rd -- /usr/bin/python3 -S -E -c "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); $(cat map.py)" >told 2>err &
    pid=$!
    for ((k = 0; k < 600; k++)); do
        grep -q maps told && break
        sleep 0.05
    done
    sleep 1
    began=$SECONDS
    kill -$signal $pid
    wait $pid
    status=$?
    took=$((SECONDS - began))
    [ $status = $((128 + $(kill -l $signal))) ] || wrong "$signal: status $status: $(cat told err)"
    [ $took -le 5 ] || wrong "$signal: took $took s"
    [ "$(cat told)" = maps ] && [ ! -s err ] || wrong "$signal: $(cat told err)"
    timeout -s KILL 30 "$REPRISE" replay -a rd >out 2>err
    [ $? = $status ] && cmp -s told out || wrong "$signal: replay: $(cat out err)"
done
finish

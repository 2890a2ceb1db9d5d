#!/bin/bash
# Threads that print while whoever reads is slow: one that waits for another's output does not keep the turn that the other one needs.
# (It did, and each write took half a second: the program has 120 of them.)
set -u
slow='import os, time
while data := os.read(0, 4096):
    os.write(1, data)
    time.sleep(0.0005)'
timeout -k 5 50 "$REPRISE" record -o rd -- "$BUILD/guest/out_threads" | /usr/bin/python3 -S -E -c "$slow" >out
[ "${PIPESTATUS[0]}" = 0 ] || { echo "the recorded program: status ${PIPESTATUS[0]}"; exit 1; }
for letter in a b c; do
    n=$(tr -dc $letter <out | wc -c)
    [ "$n" = 800000 ] || { echo "$letter: $n bytes"; exit 1; }
done
"$REPRISE" replay -a rd >again || { echo "replay: status $?"; exit 1; }
cmp out again

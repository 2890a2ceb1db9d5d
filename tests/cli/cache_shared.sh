#!/bin/bash
# Many processes write images at once; the directory stays within its limit; --no-cache leaves it alone.
. "$TESTS/cli/kept.sh"
"$REPRISE" run --no-cache -- /usr/bin/expr 1 + 1 >/dev/null
[ ! -e "$dir" ] || [ -z "$(ls -A "$dir")" ] || wrong "--no-cache has written something"

program() { echo "import json, zlib, hashlib, random, re; print(json.dumps({'n': $1}), zlib.crc32(b'$1'))"; }
for round in 1 2; do
    for i in $(seq 20); do
        "$REPRISE" run -- /usr/bin/python3 -c "$(program $i)" >out.$i 2>&1 &
    done
    wait
    for i in $(seq 20); do
        [ "$(cat out.$i)" = "$(/usr/bin/python3 -c "$(program $i)")" ] || wrong "one of many: $(head -3 out.$i)"
    done
done
is_warm /usr/bin/python3 -c "$(program 1)"
[ -z "$(find "$dir" -name '.new-*')" ] || wrong "unfinished images are left"

# What a killed writer left behind goes away, when it is old.
: >"$dir/.new-1" && : >"$dir/.new-2" && touch -d '1 hour ago' "$dir/.new-1"
run /usr/bin/sort /dev/null
[ ! -e "$dir/.new-1" ] || wrong "an old unfinished image is still there"
[ -e "$dir/.new-2" ] || wrong "an image that somebody is writing was removed"

# The limit, in KB.
for p in /usr/bin/od /usr/bin/nl /usr/bin/cut; do
    "$REPRISE" run --debug cachelimit=900 -- $p /dev/null </dev/null >/dev/null 2>&1
    total=$(find "$dir" -type f -name '????????????????' -printf '%s\n' | awk '{ n += $1 } END { print int(n / 1024) }')
    [ "$total" -le 900 ] || wrong "$total KB are kept, with a limit of 900"
done
same /usr/bin/sort /dev/null

# A program that may not write large files is not hurt by ours.
rm -rf "$dir"
(ulimit -f 8; run /usr/bin/expr 6 + 1) >out 2>err || wrong "ulimit -f: status $?"
[ "$(cat out)" = 7 ] && [ ! -s err ] || wrong "ulimit -f: $(head -3 err)"
finish

#!/bin/bash
# --debug single-from=N: blocks from number N on hold one instruction each; the program does the same.
. "$TESTS/cli/expect.sh"
program='for (i = 1; i < 300; i++) s += i * i % 7; print s'
blocks() { "$REPRISE" run --no-cache --debug trace=1 --debug "$1" -- /usr/bin/awk "BEGIN { $program }" 2>&1 >out | grep -c '^reprise: block '; }
want=$(/usr/bin/awk "BEGIN { $program }")
last=0
for n in 1000000 2000 500 0; do
    got=$(blocks single-from=$n)
    [ "$(cat out)" = "$want" ] || wrong "single-from=$n: $(head -1 out)"
    [ "$got" -ge "$last" ] || wrong "single-from=$n: $got blocks, fewer than $last"
    last=$got
done
finish

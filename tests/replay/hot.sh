#!/bin/bash
# Watchpoints on a page that is written all the time (hot.c): every kind of store is found, forwards and backwards, and quickly:
# with a page fault for each of two million writes this would take an hour.
set -u
export REPRISE_DIR=$PWD/rd
program=$BUILD/replay/hot
kinds=18
bad=0
wrong() {
    echo "wrong: $*"
    bad=1
}
again() { for ((i = 0; i < $1; i++)); do printf '%b' "$2"; done; }
walk() { "$REPRISE" walk t >out 2>err || wrong "walk: $(cat err) $(tail -3 out)"; }
values() { grep -A1 '^watch' out | grep -x '[0-9a-f]*'; }
at=$((0x$(nm "$program" | sed -n 's/ . page$//p') + 2056))

"$REPRISE" record -o rd/t -- "$program" 2000000 >recorded || wrong "record: $?"
read -r _ local <recorded
step="read $at 8\n"
# all watchpoints: one; one among a thousand; two of which one is never hit
for more in '' "$(for ((i = 1; i < 1000; i++)); do echo "watch $((at + i * 4096 * 3)) 8"; done)" "watch $((at + 2000)) 8"; do
    { echo "$more"; echo "watch $at 8"; again $((kinds + 2)) "cont\n$step"; } | walk
    values >there
    [ "$(grep -c '^watch' out)" = $kinds ] || wrong "$(grep -c '^watch' out) stops forwards"
    grep -q '^exited' out || wrong "not at the end"
    { echo "$more"; echo end; echo "watch $at 8"; again $((kinds + 2)) "rcont\n$step"; } | walk
    values >back
    [ "$(grep -c '^watch' out)" = $kinds ] || wrong "$(grep -c '^watch' out) stops backwards"
    [ "$(tail -2 out | cut -d' ' -f1 | head -1)" = begin ] || wrong "not at the begin"
    # what is there behind a write is there in front of the next one
    { echo 0000000000000000; sed '$d' there; } | tac | cmp - back || wrong "values: $(tr '\n' ' ' <there) and $(tr '\n' ' ' <back)"
done
[ "$(sort -u there | wc -l)" = $kinds ] || wrong "values: $(tr '\n' ' ' <there)"

# relative to fs, on a page of its own; that the page comes is told, too
{ echo "watch $local 8"; again 4 "cont\nread $local 1\n"; } | walk
[ "$(grep -A1 '^watch' out | grep -x '[0-9a-f]*' | tr '\n' ' ')" = '00 13 14 15 ' ] || wrong "relative to fs: $(cat out)"

# a store that changes nothing is no change, but it is a store
"$REPRISE" why t "$at:8" >out || wrong why
grep -q 'main () at' out && grep -q '8 bytes: 0x1212121212121212 -> 0x1212121212121212' out || wrong "why: $(cat out)"
exit $bad

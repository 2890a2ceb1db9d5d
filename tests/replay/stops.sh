#!/bin/bash
# Breakpoints and watchpoints on a timeline, forwards and backwards: how many, where, and what memory holds there.
set -u
export REPRISE_DIR=$PWD/rd
program=$BUILD/replay/counted
bad=0
wrong() {
    echo "wrong: $*"
    bad=1
}
addr() { nm "$program" | sed -n "s/^\([0-9a-f]*\) . $1\$/0x\1/p"; }
again() { for ((i = 0; i < $1; i++)); do printf '%b' "$2"; done; }
walk() { "$REPRISE" walk t >out 2>err || wrong "walk: $(cat err) $(tail -3 out)"; }

"$REPRISE" record -o rd/t -- "$program" >recorded || [ $? = 7 ] || wrong "record: $?"
grep -q '^1010 1 written x$' recorded || wrong "output: $(cat recorded)"

# 20 calls, there and back
{ echo "break $(addr count)"; again 22 'cont\n'; again 22 'rcont\n'; } | walk
[ "$(grep -c '^break' out)" = 40 ] || wrong "breakpoints: $(grep -c '^break' out)"
grep -q '^signal .* signal 10$' out || wrong "no signal"
grep -q '^exited .* status 7$' out || wrong "no exit"
[ "$(tail -1 out | cut -d' ' -f1)" = begin ] || wrong "not at the begin: $(tail -1 out)"
grep '^break' out | head -20 | cut -d' ' -f1-7 >there
grep '^break' out | tail -20 | cut -d' ' -f1-7 | tac >back
cmp there back || wrong "other places on the way back"

# the counter: behind each write forwards, in front of it backwards
value="read $(addr counter) 4"
{ echo "watch $(addr counter) 4"; again 22 "cont\n$value\n"; again 22 "rcont\n$value\n"; } | walk
[ "$(grep -c '^watch' out)" = 40 ] || wrong "watchpoints: $(grep -c '^watch' out)"
grep -A1 '^watch' out | grep -v -e '^watch' -e '^--' >values
[ "$(sed -n 1p values) $(sed -n 20p values) $(sed -n 21p values) $(sed -n 40p values)" = "01000000 f2030000 8e030000 00000000" ] ||
    wrong "values: $(tr '\n' ' ' <values)"

# memory that a system call writes
{ echo "watch $(addr buffer) 1"; echo cont; echo cont; echo "read $(addr buffer) 7"; echo end; echo rcont; echo "read $(addr buffer) 7"; echo step; echo "read $(addr buffer) 7"; } | walk
[ "$(grep -c '^watch' out)" = 3 ] || wrong "written by a call: $(cat out)"
[ "$(grep -x '[0-9a-f]*' out | tr '\n' ' ')" = "7772697474656e 00000000000000 7772697474656e " ] || wrong "by a call: $(cat out)"

# a thousand watchpoints, most of them on nothing
{ for ((i = 0; i < 1000; i++)); do echo "watch $((0x60000000 + i * 8192)) 8"; done; echo "watch $(addr counter) 4"; again 21 'cont\n'; } | walk
[ "$(grep -c '^watch' out)" = 20 ] || wrong "among many: $(grep -c '^watch' out)"

# what is changed is changed in a copy
{ echo "break $(addr count)"; echo cont; echo "write $(addr counter) 9"; echo "read $(addr counter) 1"; echo cont; echo begin; echo cont; echo "read $(addr counter) 1"; } | walk
[ "$(grep -x '[0-9a-f]*' out | tr '\n' ' ')" = "09 00 " ] || wrong "a copy: $(cat out)"
exit $bad

#!/bin/bash
# `elapsed`: when the program was where it is, before and behind a second of sleep.
set -u
export REPRISE_DIR=$PWD/rd
"$REPRISE" record -o rd/t -- sleep 1.2 || exit 1
printf 'begin\nmonitor elapsed\nend\nmonitor elapsed\n' | "$REPRISE" walk t >out || exit 1
sed -n 's/ s after the recording began, at .*//p' out >times
awk 'NR == 1 { first = $1 } NR == 2 { last = $1 } END { exit !(NR == 2 && first < 1 && last >= first + 1.1 && last < first + 30) }' times && exit 0
echo "wrong times:"
cat out
exit 1

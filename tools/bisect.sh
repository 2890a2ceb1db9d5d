#!/bin/bash
# Finds the block that is translated wrongly: tools/bisect.sh 'CHECK' -- CMD...   (docs/debugging.md)
# CHECK is a shell command that runs "$@" and succeeds if the result is right.
set -u
[ $# -ge 3 ] && [ "$2" = -- ] || { sed -n 2,3p "$0" >&2; exit 125; }
check=$1
shift 2
reprise=${REPRISE:-$(dirname "$0")/../build/reprise}
good() { # good N: is the result right with single-from=N?
    bash -c "$check" check "$reprise" run --no-cache --debug single-from="$1" -- "${cmd[@]}" >/dev/null 2>&1
}
cmd=("$@")
high=$("$reprise" run --no-cache --debug trace=1 -- "$@" 2>&1 </dev/null | sed -n 's/^reprise: block \([0-9]*\):.*/\1/p' | sort -n | tail -1)
high=$((${high:-0} + 1))
good 0 || { echo "wrong with single-from=0, too: the mistake is in one instruction"; exit 1; }
good $high && { echo "right with every block whole"; exit 1; }
low=0
while [ $((high - low)) -gt 1 ]; do
    middle=$(((low + high) / 2))
    if good $middle; then low=$middle; else high=$middle; fi
done
echo "block $low:"
"$reprise" run --no-cache --debug trace=2 --debug single-from=$high -- "$@" 2>&1 </dev/null | grep -A 70 "^reprise: block $low:" |
    sed -n "1p; 2,\$ { /^reprise: block/q; p; }"

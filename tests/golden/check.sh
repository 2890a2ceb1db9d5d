#!/bin/bash
# What reprise says about the golden recordings is what it said before; and the second reader (tools/read_log.py) sees the
# same frames and events. tests/golden/check.sh --update writes the expectations anew.
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
REPRISE=${REPRISE:-../../build/reprise} READ=../../tools/read_log.py
export TZ=UTC LC_ALL=C
failures=0
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

say() {
    local verb
    for verb in info ps dump 'dump --raw'; do
        echo "\$ reprise $verb $1"
        $REPRISE $verb "$1" >"$work/out" 2>"$work/err"
        local status=$?
        grep -vE '^  (input|interleaving) ' "$work/out" # depend on the release of zstd
        echo "[exit $status]"
        cat "$work/err"
    done
}

for log in *.log; do
    name=${log%.log}
    say "$log" >"$work/got"
    if [ "$1" = --update ]; then
        cp "$work/got" "$name.expected"
    elif ! diff -u "$name.expected" "$work/got" >"$work/diff"; then
        echo "$name: other output"
        head -20 "$work/diff"
        failures=1
    fi
    for mode in --raw --json; do
        $REPRISE dump ${mode#--json} --json "$log" >"$work/ours" 2>/dev/null
        ours=$?
        /usr/bin/python3 $READ $mode "$log" >"$work/theirs" 2>/dev/null
        theirs=$?
        /usr/bin/python3 compare.py "$work/ours" "$work/theirs" || { echo "$name: the readers differ ($mode)"; failures=1; }
        # Only info looks at the order of events, the second reader always does.
        [ $mode = --json ] || [ $((ours > 0)) = $((theirs > 0)) ] || { echo "$name: $ours, $theirs ($mode)"; failures=1; }
    done
done
exit $failures

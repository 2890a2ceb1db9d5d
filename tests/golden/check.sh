#!/bin/bash
# What reprise says about the golden recordings is what it said before; and the second reader (tools/read_log.py) sees the
# same frames and events (compare.py). tests/golden/check.sh --update writes the expectations anew.
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
REPRISE=${REPRISE:-../../build/reprise}
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
done
/usr/bin/python3 compare.py "$REPRISE" *.log || failures=1
exit $failures

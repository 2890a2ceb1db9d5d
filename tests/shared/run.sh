#!/bin/bash
# Programs that share memory between processes: recorded and replayed; output and status must be the same.
#   tests/shared/run.sh [-n RECORDINGS] [--chaos] [--one-core] [--keep] [PROGRAM...]
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../../build}
REPRISE=${REPRISE:-$build/reprise}
n=1 options= core= keep= names=()
while [ $# -gt 0 ]; do
    case $1 in
    -n) n=$2; shift ;;
    --chaos) options=--chaos ;;
    --one-core) core="taskset -c 0" ;;
    --keep) keep=1 ;;
    -*) sed -n '2,3s/^# \{0,3\}//p' "$0" >&2; exit 125 ;;
    *) names+=("$1") ;;
    esac
    shift
done
[ ${#names[@]} = 0 ] && for f in "$here"/*.c; do names+=("$(basename "$f" .c)"); done
work=$(mktemp -d "${TMPDIR:-/tmp}/shared.XXXXXX") || exit 125
[ -n "$keep" ] || trap 'rm -rf "$work"' EXIT
export REPRISE_DIR=$work/base
failed=0
for name in "${names[@]}"; do
    for ((i = 1; i <= n; i++)); do
        rm -rf "$work/$name"
        $core timeout -k 5 60 "$REPRISE" record $options -o "$work/$name" -- "$build/shared/$name" >"$work/out" 2>"$work/err"; a=$?
        $core timeout -k 5 90 "$REPRISE" replay -a "$work/$name" >"$work/out2" 2>"$work/err2"; b=$?
        sed -i "/goes on unrecorded/d" "$work/err" # said of the killed, on a busy machine
        if [ $a != 0 ] || [ $b != 0 ] || ! cmp -s "$work/out" "$work/out2" || [ -s "$work/err" ] || [ -s "$work/err2" ]; then
            echo "FAIL  $name, recording $i: recorded $a, replayed $b"
            head -3 "$work/err"; head -3 "$work/err2"; diff "$work/out" "$work/out2" | head -5
            failed=$((failed + 1))
            break
        fi
    done
done
echo "$((${#names[@]} - failed)) passed, $failed failed"
[ $failed = 0 ]

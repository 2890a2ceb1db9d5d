#!/bin/bash
# Racy programs: each is recorded, and every replay must repeat what the recording printed and how it ended.
#   tests/race/run.sh [-n N] [-r N] [-k PATTERN]... [--part I/N] [-j N] [--chaos] [--native] [--keep DIR] [-v] [PROGRAM...]
#   -n N        replays of each recording (3)            -r N      recordings of each program (1)
#   -k PATTERN  programs whose name matches (shell pattern or part)
#   --part I/N  each Nth of them, beginning with the Ith
#   -j N        so many programs at a time (1)           --chaos   recorded in chaos mode
#   --native    no recording: how many different outcomes do N native runs have?
#   --keep DIR  leave recordings of failures there       -v        say what passes, too
# REPRISE names the command (build/reprise), BUILD the folder with race/PROGRAM.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../../build}
REPRISE=${REPRISE:-$build/reprise}
replays=3 recordings=1 jobs=1 limit=60 part=1 parts=1 chaos= native= keep= verbose=
patterns=() names=()
while [ $# -gt 0 ]; do
    case $1 in
    -n) replays=$2; shift ;;
    -r) recordings=$2; shift ;;
    -k) patterns+=("$2"); shift ;;
    -j) jobs=$2; shift ;;
    --part) part=${2%/*} parts=${2#*/}; shift ;;
    --chaos) chaos=--chaos ;;
    --native) native=1 ;;
    --keep) keep=$2; shift ;;
    -v) verbose=1 ;;
    -*) sed -n '2,10s/^# \{0,3\}//p' "$0" >&2; exit 125 ;;
    *) names+=("$1") ;;
    esac
    shift
done

chosen() {
    [ ${#patterns[@]} = 0 ] && return 0
    local p
    for p in "${patterns[@]}"; do [[ $1 == $p || $1 == *$p* ]] && return 0; done
    return 1
}

if [ ${#names[@]} = 0 ]; then
    for source in "$here"/*.c "$here"/*.cc; do
        name=$(basename "${source%.*}")
        chosen "$name" && names+=("$name")
    done
fi

all=("${names[@]}") names=()
for ((i = part - 1; i < ${#all[@]}; i += parts)); do names+=("${all[i]}"); done

work=$(mktemp -d "${TMPDIR:-/tmp}/race.XXXXXX") || exit 125
trap 'rm -rf "$work"' EXIT
export REPRISE_DIR=${keep:-$work}/base
mkdir -p "$REPRISE_DIR"

outcome() { # outcome FILES COMMAND...: runs it; FILES.out, FILES.err, FILES.status
    local files=$1
    shift
    timeout -k 5 "$limit" "$@" >"$files.out" 2>"$files.err" </dev/null
    echo $? >"$files.status"
}

differs() { # prints what is not the same in the outcomes $1 and $2
    local what
    for what in status out err; do
        cmp -s "$1.$what" "$2.$what" && continue
        echo "      $what (- recorded, + replayed)"
        diff -a "$1.$what" "$2.$what" | grep -a '^[<>]' | sed 's/^</-/; s/^>/+/; s/^/      /' | cut -c1-160 | head -8
    done
}

failed() { # failed NAME WHAT DETAILS
    printf 'FAIL  %s: %s\n%s\n' "$1" "$2" "$3"
    [ -n "$keep" ] && mkdir -p "$keep" && rm -rf "${keep:?}/$1" && cp -r "$work/$1" "$keep/$1"
    echo "$1" >>"$work/failed"
}

one() { # one PROGRAM: record, replay, compare
    local name=$1 dir=$work/$1 i r detail
    mkdir -p "$dir"
    for ((i = 1; i <= recordings; i++)); do
        rm -rf "$dir/rec"
        outcome "$dir/recorded" "$REPRISE" record $chaos -o "$dir/rec" -- "$build/race/$name"
        if grep -aq '^reprise: ' "$dir/recorded.err" || grep -q '^12[45]$' "$dir/recorded.status"; then
            failed "$name" "recording $i ended with $(<"$dir/recorded.status")" "$(head -c 600 "$dir/recorded.err")"
            return
        fi
        for ((r = 1; r <= replays; r++)); do
            outcome "$dir/replayed" "$REPRISE" replay -a "$dir/rec"
            detail=$(differs "$dir/recorded" "$dir/replayed")
            if [ -n "$detail" ]; then
                failed "$name" "replay $r of recording $i" "$detail"
                return
            fi
        done
    done
    [ -n "$verbose" ] && echo "ok    $name"
    return 0
}

one_native() { # how many outcomes has it?
    local name=$1 dir=$work/$1 i start=$EPOCHREALTIME
    mkdir -p "$dir"
    for ((i = 1; i <= replays; i++)); do
        outcome "$dir/$i" "$build/race/$name"
        grep -q '^124$' "$dir/$i.status" && failed "$name" "hangs" ""
        cat "$dir/$i".* | cksum
    done | sort -u >"$dir/outcomes"
    printf '%-22s %d outcomes, %d ms\n' "$name" "$(wc -l <"$dir/outcomes")" \
        $(((${EPOCHREALTIME/./} - ${start/./}) / 1000 / replays))
}

for name in "${names[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    if [ -n "$native" ]; then one_native "$name"; else one "$name"; fi &
done
wait
bad=0
[ -e "$work/failed" ] && bad=$(wc -l <"$work/failed")
echo "$((${#names[@]} - bad)) passed, $bad failed"
[ "$bad" = 0 ]

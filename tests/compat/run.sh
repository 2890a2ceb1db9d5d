#!/bin/bash
# Real programs: each case runs natively and under `reprise run`; stdout and exit status must be the same. With --record it runs
# under `reprise record` instead, and every recording must replay to the recorded output and status.
#   tests/compat/run.sh [-k PATTERN]... [--only NAME] [--fast] [--repeat N] [--list] [--show] [-v] [--keep]
#                        [--record] [--chaos] [--replays N] [--replay-on CPUS]
#   -k PATTERN  cases whose name matches (shell pattern or part)     --only NAME  this one
#   --fast      the cases tagged fast, which `make check` runs       --repeat N   N translated runs of each case
#   -v          print times of what passes, too                      --keep       stop at a failure and leave its folder
#   --record    record and replay (--replays N: so many times; --replay-on CPUS: by these processors, as for taskset;
#               --chaos: recorded in chaos mode)
#   --show      print what the native run prints, run nothing else
# REPRISE names the command (build/reprise). A case is tests/compat/cases/NAME.sh; its first lines say:
#   # needs: PROGRAM...   skipped where one is missing (a name, or a path)
#   # tags: fast          # timeout: SECONDS (60)
# It is run by bash in an empty folder; what it starts with $RUN is translated. lib.sh has what servers need.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../../build}
REPRISE=${REPRISE:-$build/reprise}
patterns=() only= fast= repeat=1 list= show= verbose= keep= record= chaos= replays=1 on=
while [ $# -gt 0 ]; do
    case $1 in
    -k) patterns+=("$2"); shift ;;
    --only) only=$2; shift ;;
    --fast) fast=1 ;;
    --repeat) repeat=$2; shift ;;
    --list) list=1 ;;
    --show) show=1 ;;
    -v) verbose=1 ;;
    --keep) keep=1 ;;
    --record) record=1 ;;
    --chaos) record=1 chaos=--chaos ;;
    --replays) replays=$2; shift ;;
    --replay-on) on="taskset -c $2"; shift ;;
    *) echo "usage: $0 [-k PATTERN]... [--only NAME] [--fast] [--repeat N] [--list] [--show] [-v] [--keep]" >&2; exit 125 ;;
    esac
    shift
done
case $REPRISE in /*) ;; *) REPRISE=$PWD/$REPRISE ;; esac

header() { sed -n "s/^# $2: *//p" "$here/cases/$1.sh" | head -1; } # header CASE FIELD

chosen() { # is the case $1 asked for?
    [ -n "$only" ] && { [ "$1" = "$only" ]; return; }
    [ -n "$fast" ] && [[ " $(header "$1" tags) " != *" fast "* ]] && return 1
    [ ${#patterns[@]} = 0 ] && return 0
    local p
    for p in "${patterns[@]}"; do [[ $1 == $p || $1 == *$p* ]] && return 0; done
    return 1
}

missing() { # prints the first program that case $1 needs and that is not there
    local p
    for p in $(header "$1" needs); do
        case $p in
        /*) [ -e "$p" ] || { echo "$p"; return; } ;;
        *) PATH=$case_path command -v "$p" >/dev/null || { echo "$p"; return; } ;;
        esac
    done
}

shopt -s nullglob
pg=(/usr/lib/postgresql/*/bin)
case_path=/usr/sbin:/usr/bin:/sbin:/bin${pg:+:${pg[-1]}}:$here/bin
root=$(mktemp -d /tmp/reprise-compat-XXXXXX) && chmod 755 "$root" || exit 2
trap '[ -n "${kept:-}" ] || rm -rf "$root"' EXIT

# allowed SECONDS: a time limit, longer where processors have more than one process each (as tests/run does it)
allowed() { awk -v limit="$1" -v cores="$(nproc)" '{ print int(limit * ($1 > cores ? $1 / cores : 1)) }' /proc/loadavg; }

# perform CASE RUN OUT: one run in a fresh folder of always the same name; leaves OUT.out, OUT.err, OUT.status
perform() {
    rm -rf "$root/area" && mkdir -m 755 "$root/area" "$root/area/home"
    local limit
    limit=$(header "$1" timeout)
    (
        cd "$root/area" || exit 99
        exec env -i PATH="$case_path" HOME="$root/area/home" TMPDIR="$root/area" LC_ALL=C.UTF-8 TZ=UTC USER="$(id -un)" LOGNAME="$(id -un)" \
            SHELL=/bin/bash TERM=dumb XDG_CACHE_HOME="${XDG_CACHE_HOME:-$build/compat-cache}" RUN="$2" \
            RECORDINGS="$root/recordings" REPRISE="$REPRISE" RECORD_OPTIONS="$chaos" REPRISE_DIR="$root/reprise" LIB="$here/lib.sh" CASES="$here/cases" \
            timeout -k 5 "$(allowed "${limit:-60}")" bash -c '. "$LIB"; . "$0"' "$here/cases/$1.sh"
    ) >"$3.out" 2>"$3.err" </dev/null
    echo $? >"$3.status"
}

differs() { # differs REF GOT: prints an excerpt and succeeds if the runs differ
    if [ "$(cat "$1.status")" != "$(cat "$2.status")" ]; then
        echo "  exit status $(cat "$2.status"), natively $(cat "$1.status")"
    elif cmp -s "$1.out" "$2.out"; then
        return 1
    else
        echo "  output differs (- native, + translated)"
    fi
    diff -U1 -a "$1.out" "$2.out" | sed 1,2d | cut -c1-160 | head -12 | sed 's/^/    /'
    [ -s "$2.err" ] && { echo "  stderr ends:"; tail -4 "$2.err" | cut -c1-200 | sed 's/^/    /'; }
    return 0
}

replay() { REPRISE_DIR="$root/reprise" timeout -k 5 "$(allowed 120)" $on "$REPRISE" replay -a "$1" </dev/null; }

# replay_all: replays what the case has recorded; prints an excerpt and succeeds if one differs
replay_all() {
    local dir i status want
    for dir in "$root"/recordings/*/; do
        want=$("$REPRISE" info --json "$dir/rec" 2>&1 | /usr/bin/python3 -c 'import json, sys; s = json.load(sys.stdin)["status"]; print(s >> 8 if s & 127 == 0 else 128 + (s & 127))' 2>&1) || {
            echo "  no status: $want" | tail -2; return 0; }
        for ((i = 0; i < replays; i++)); do
            if [ -e "$dir/merged" ]; then
                replay "$dir/rec" >"$root/replay.out" 2>&1
                status=$?
                cp "$root/replay.out" "$root/replay.err"
            else
                replay "$dir/rec" >"$root/replay.out" 2>"$root/replay.err"
                status=$?
            fi
            # whoever read the output may have had enough before its end
            [ -e "$dir/cut" ] && head -c "$(stat -c %s "$dir/out")" "$root/replay.out" >"$root/head" && mv "$root/head" "$root/replay.out"
            [ $status = "$want" ] && cmp -s "$dir/out" "$root/replay.out" && continue
            echo "  replay of $(basename "$dir"): status $status, recorded $want"
            diff -U1 -a "$dir/out" "$root/replay.out" | sed 1,2d | cut -c1-160 | head -8 | sed 's/^/    /'
            grep -a '^reprise:' "$root/replay.err" | head -4 | sed 's/^/    /'
            return 0
        done
    done
    return 1
}

seconds() { local us=$(($(date +%s%N) / 1000 - $1)); printf '%d.%d s' $((us / 1000000)) $((us / 100000 % 10)); }

passed=0 failed=0 skipped=0
mkdir -p "${XDG_CACHE_HOME:-$build/compat-cache}"
for file in "$here"/cases/*.sh; do
    name=$(basename "$file" .sh)
    chosen "$name" || continue
    [ -n "$list" ] && { printf '%-16s %s\n' "$name" "$(header "$name" tags)"; continue; }
    lacks=$(missing "$name")
    [ -n "$lacks" ] && { echo "skip $name: $lacks is not installed"; skipped=$((skipped + 1)); continue; }
    begin=$(($(date +%s%N) / 1000))
    perform "$name" "" "$root/native"
    if [ "$(cat "$root/native.status")" = 77 ]; then
        echo "skip $name: $(tail -1 "$root/native.err")"; skipped=$((skipped + 1)); continue
    fi
    time_native=$(seconds $begin)
    [ -n "$show" ] && { echo "== $name"; cat "$root/native.out" "$root/native.err"; continue; }
    verdict=ok
    for ((i = 1; i <= repeat; i++)); do
        begin=$(($(date +%s%N) / 1000))
        run="$REPRISE run --"
        [ -n "$record" ] && { run=$here/record.py; rm -rf "$root/recordings" "$root/reprise"; mkdir -m 777 "$root/recordings" "$root/reprise"; }
        perform "$name" "$run" "$root/run"
        time_run=$(seconds $begin)
        excerpt=$(differs "$root/native" "$root/run") || { [ -n "$record" ] && excerpt=$(replay_all); } || continue
        verdict=FAIL
        [ -n "$keep" ] && kept=1 && excerpt+=$'\n'"  kept in $root"
        break
    done
    # a case that natively ends otherwise than it should tests nothing
    expected=$(header "$name" exits)
    if [ "$(cat "$root/native.status")" != "${expected:-0}" ]; then
        verdict=FAIL
        excerpt="  natively: exit status $(cat "$root/native.status"), not ${expected:-0}"$'\n'$(tail -5 "$root/native.err" | sed 's/^/    /')
    fi
    if [ $verdict = ok ]; then
        passed=$((passed + 1))
        echo "ok   $name${verbose:+ (natively $time_native, translated $time_run)}"
    else
        failed=$((failed + 1))
        echo "FAIL $name$([ $repeat -gt 1 ] && echo " (run $i of $repeat)")"
        echo "$excerpt"
        [ -n "${kept:-}" ] && break
    fi
done
[ -n "$list$show" ] && exit 0
echo "$passed passed, $failed failed$([ $skipped -gt 0 ] && echo ", $skipped skipped")"
[ $failed -gt 0 ] && exit 1
[ $passed -eq 0 ] && exit 77
exit 0

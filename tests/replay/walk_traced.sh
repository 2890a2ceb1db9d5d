#!/bin/bash
# Walks on timelines of tracees: each is replayed alone, and what its tracer did to it comes from the log. They stop in calls,
# right behind them, at ticks and for faults, and one is killed while it is stopped.
set -u
export REPRISE_DIR=$PWD/rd
bad=0
moves=${1:-40}
for t in ptrace_me ptrace_calls ptrace_group_stop ptrace_sysemu ptrace_options; do
    "$REPRISE" record -o "rd/$t" -- "$BUILD/guest/$t" >/dev/null 2>&1
    for pid in $("$REPRISE" ps "$t" | awk 'NR > 2 && NR < 6 {print $1}'); do
        printf '%s\n' "there-and-back 60" end "back 20" "there-and-back 15" begin "random $moves 1" |
            timeout 100 "$REPRISE" walk -p "$pid" "$t" >out 2>&1 || {
            echo "$t, process $pid: $(tail -4 out)"
            bad=1
        }
    done
done
exit $bad

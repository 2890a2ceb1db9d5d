#!/bin/bash
# Walks on timelines of tracees: each is replayed alone, and what its tracer did to it comes from the log. They stop in calls,
# right behind them, at ticks and for faults, and one is killed while it is stopped.
set -u
moves=${1:-40}
. "${0%/*}/walks.sh"
for t in ptrace_me ptrace_calls ptrace_group_stop ptrace_sysemu ptrace_options; do
    "$REPRISE" record -o "rd/$t" -- "$BUILD/guest/$t" >/dev/null 2>&1
    walk "$t" "$t" $("$REPRISE" ps "$t" | awk 'NR > 2 && NR < 6 {print $1}')
done
# a fault that the tracer sees first, and which is the end
"$REPRISE" record -o rd/crash -- "$BUILD/replay/tracer" "$BUILD/replay/states" crash 0.1 >/dev/null 2>&1
walk crash "tracee that crashes" $("$REPRISE" ps crash | awk 'NR == 3 {print $1}')
exit $bad

#!/bin/bash
# Walks on timelines: steps there and back visit the same places; a random walk never finds a place changed. (On a busy machine the turns of
# threads that spin, sig_threads, become longer, and with them the recording: so it gets time.)
set -u
export REPRISE_DIR=$PWD/rd
bad=0
moves=${1:-400}
for name in replay/counted guest/thread_sync guest/sig_itimer guest/sig_threads guest/trap_flag guest/fault_repair guest/proc_fork \
    guest/cxx_exceptions guest/jit_rewrite; do
    t=${name#*/}
    "$REPRISE" record -o "rd/$t" -- "$BUILD/$name" >/dev/null 2>&1
    printf '%s\n' "there-and-back 150" end "back 30" "there-and-back 20" begin "random $moves 1" "random $moves 2" |
        timeout 250 "$REPRISE" walk "$t" >out 2>&1 || {
        echo "$name: $(tail -4 out)"
        bad=1
    }
done
exit $bad

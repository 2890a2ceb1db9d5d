# Walks on timelines of single processes; read in by tests that have recordings for it. They set `moves`, and exit with $bad.
export REPRISE_DIR=$PWD/rd
bad=0

# A process that was killed before its first instruction has nowhere to go. Its log is cut off, unless its tracer killed it, which is an
# event; one that never began cannot have exited.
never_began() {
    grep -q 'the recording has no instruction' out && ! "$REPRISE" ps "$1" | grep -qE "^ *$2 .*exit(ed)? "
}

# walk RECORDING NAME PID...: there and back, and at random
walk() {
    local recording=$1 name=$2 pid
    shift 2
    [ $# -gt 0 ] || { echo "$name: no processes"; bad=1; }
    for pid; do
        printf '%s\n' "there-and-back 60" end "back 20" "there-and-back 15" begin "random $moves 1" |
            timeout 100 "$REPRISE" walk -p "$pid" "$recording" >out 2>&1 || never_began "$recording" "$pid" || {
            echo "$name, process $pid: $(tail -4 out)"
            bad=1
        }
    done
}

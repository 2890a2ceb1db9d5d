# Restores compared with a replay from the start; read in by tests that have recordings for it. They exit with $bad.
export REPRISE_DIR=$PWD/rd
bad=0
wrong() { echo "$*"; bad=1; }

# compare NAME LEAST [-p PID]: places in the order of time from the start, and backwards with restores
compare() {
    local name=$1 least=$2
    shift 2
    echo stored | timeout 60 "$REPRISE" walk "$@" "$name" >places 2>err || wrong "$name: $(tail -1 err)"
    [ "$(wc -l <places)" -ge "$least" ] || wrong "$name $*: $(wc -l <places) checkpoints, not $least"
    visit() { awk '{ print "seek", $1, $2, $3; print "state"; print "step 30"; print "state" }'; }
    (visit <places; echo end; echo state) | timeout 100 "$REPRISE" walk --from-start "$@" "$name" >there 2>&1
    (echo end; echo state; tac places | visit; echo stored) | timeout 100 "$REPRISE" walk "$@" "$name" >back 2>&1
    tail -n "$(wc -l <places)" back | cmp -s - places || wrong "$name $*: could not be restored: $(tail -2 back)"
    head -n -"$(wc -l <places)" back | awk 'BEGIN { n = 0 } { g = int((NR - 3) / 4); if (NR <= 2) g = -1; t[g] = t[g] $0 "\n"; if (g > n) n = g }
        END { for (i = n; i >= 0; i--) printf "%s", t[i]; printf "%s", t[-1] }' >sorted
    grep -q "^FAILED\|^failed" there && wrong "$name $*: $(grep -m1 -i ^failed there)"
    cmp -s there sorted || wrong "$name $*: different: $(diff there sorted | head -4)"
}

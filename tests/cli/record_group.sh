#!/bin/bash
# A program that sends a signal to its process group does not end its recording; what it writes to standard output by another
# name is repeated. Recorded by themselves: signals reach a whole session.
export REPRISE_DIR=$PWD/recordings
failed=0
wrong() { echo "$*"; failed=1; }

status_of() { # COMMAND...: in a session of its own; the exit status as a shell sees it
    timeout -k 2 30 setsid -w "$@" 2>/dev/null
    echo "status $?"
}

for sig in ABRT TRAP SEGV USR1 HUP RTMIN; do
    native=$(status_of bash -c "echo before; kill -$sig 0; echo not reached")
    recorded=$(status_of "$REPRISE" record -o "group-$sig" -- bash -c "echo before; kill -$sig 0; echo not reached")
    replayed=$(status_of "$REPRISE" replay -a "group-$sig")
    [ "${recorded##*status }" = "${replayed##*status }" ] || wrong "$sig: recorded $recorded, replayed $replayed"
    [ "${native%status*}" = "${replayed%status*}" ] || wrong "$sig: native $native, replayed $replayed"
done

# once, though the controller, in the same group, gets the signal too
timeout -k 2 30 setsid -w "$REPRISE" record -o once -- \
    bash -c 'trap "echo got it" USR1; (kill -USR1 0) 2>/dev/null; sleep 0.3; echo end' >once.out 2>&1
[ "$(grep -c 'got it' once.out)" = 1 ] || wrong "a signal to the group came $(grep -c 'got it' once.out) times"

again() { # COMMAND: its output is a pipe
    local recorded replayed
    recorded=$("$REPRISE" record -o "out-$#-$RANDOM" -- bash -c "$1" 2>&1 | cat)
    replayed=$("$REPRISE" replay -a "$(ls -td out-* | head -1)" 2>&1 | cat)
    [ "$recorded" = "$replayed" ] && [ -n "$recorded" ] || wrong "$1: recorded '$recorded', replayed '$replayed'"
}
again 'echo hello >/dev/stdout'
again 'echo hello >/dev/stderr'
again 'echo hello | tee /dev/stderr'
again 'exec 77>/proc/self/fd/1; echo hello >&77'
again 'exec 200>&1; echo hello >&200'
exit $failed

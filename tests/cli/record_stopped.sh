#!/bin/bash
# Recording stops because the log has reached its limit, while processes share memory: the program does not notice, and processes
# that are forked behind that share it with those that were recorded. Nor does it notice in the middle of tracing, stopping, forking
# and executing others, and what was recorded up to there is repeated.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/recordings
for i in 1 2 3; do
    expect 0 'reprise: recording stopped: the log has reached *' \
        "$REPRISE" record --limit 50K -o "stopped-$i" -- "$BUILD/shared/unrecorded" 150000
    [ "$(cat out)" = 'all steps are there' ] || wrong "recording $i: $(cat out)"
done
# What the log has of one process may name pages that another one gave away behind its own end: a replay does not wait for them.
for limit in 40 60 80 100; do
    timeout 50 "$REPRISE" record --limit ${limit}K -o "cut-$limit" -- "$BUILD/replay/sharers" $([ $((limit % 40)) = 0 ] && echo memfd || echo inherited) 2 >out 2>said
    grep -q 'the log has reached' said || { [ $limit = 40 ] && wrong "a limit of $limit KB: $(tail -2 said)"; continue; } # a slow machine
    timeout 50 "$REPRISE" replay -a "cut-$limit" >out 2>said
    grep -q 'the recording stops here' said || wrong "cut at $limit KB: status $?, $(tail -2 said)"
done

ends_before() { # ends_before EVENT: nothing was said, and the recording has no event with this number
    local events
    events=$("$REPRISE" info stopped | awk '/^events/ { print $2 }')
    [ ! -s said ] && [ "${events:-$1}" -lt "$1" ]
}
stops_at() { # stops_at PROGRAM EVENT...
    local program=$BUILD/guest/$1 n
    shift
    "$program" >natively 2>/dev/null </dev/null
    for n; do
        while
            rm -rf stopped
            timeout 50 "$REPRISE" record --debug stop-at="$n" -o stopped -- "$program" >out 2>said || wrong "$program: exits with $?"
            ends_before "$n"
        do
            n=$((n / 2)) # how many events a program has that waits in loops depends on the machine
        done
        [[ $(wc -l <said) == 1 && $(cat said) == 'reprise: recording stopped: '* ]] || wrong "$program, stopped at $n: $(head -3 said)"
        cmp -s natively out || wrong "$program, stopped at $n: $(diff natively out | head -3)"
        timeout 50 "$REPRISE" replay -a stopped >out 2>said
        grep -q 'the recording stops here' said || wrong "$program, stopped at $n, replayed: $(head -3 said)"
    done
}
stops_at ptrace_before_main 37 244 375 570 # a tracee executes a program: it is traced there, too
stops_at ptrace_vfork 78 115 222
stops_at ptrace_sigreturn 100 250
stops_at sig_stop_cont 200 3000
stops_at proc_spawn 50 150
stops_at fork_storm 2745 # forks while other threads have the turn, or wait for it
finish

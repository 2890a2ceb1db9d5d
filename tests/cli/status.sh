#!/bin/bash
# Exit statuses and signals are the program's; arguments, environment and stdin arrive as they are.
. "$TESTS/cli/expect.sh"
for n in 0 1 7 124 125 126 127 128 255; do
    expect $n '' "$REPRISE" run -- /bin/sh -c "exit $n"
done
for s in TERM KILL HUP SEGV ABRT USR1; do
    expect $((128 + $(kill -l $s))) '' "$REPRISE" run -- /bin/sh -c "kill -$s \$\$"
done
expect 0 '' "$REPRISE" run -- printf '[%s]' 'a b' '' '*' $'new\nline'
[ "$(cat out)" = $'[a b][][*][new\nline]' ] || wrong "arguments: $(cat out)"
expect 0 '' env -i A=1 B='x y' "$REPRISE" run -- /usr/bin/env
[ "$(cat out)" = $'A=1\nB=x y' ] || wrong "environment: $(cat out)"
[ "$(echo hello | "$REPRISE" run -- cat)" = hello ] || wrong "stdin did not arrive"
finish

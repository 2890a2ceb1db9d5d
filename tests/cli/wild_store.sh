#!/bin/bash
# A store of the program into the runtime's windows is named, in one line, and is a SIGSEGV as anywhere else.
. "$TESTS/cli/expect.sh"
program=$BUILD/guest/wild_runtime
for at in 7ef080000000 7ef6f0000000 7efef0000000; do
    expect 0 "reprise: the program wrote to $at, which belongs to the runtime (*; guest pc *)" "$REPRISE" run -- "$program" $at
    grep -q '^3 caught' out || wrong "$at: $(cat out)"
done
expect 0 '' "$REPRISE" run -- "$program" 123456789000
# what is not filled of the code cache
expect 0 'reprise: the program wrote to 44200000, which belongs to the runtime (code cache; guest pc *)' "$REPRISE" run --no-cache -- "$program" 44200000
grep -q '^3 caught' out || wrong "44200000: $(cat out)"
(ulimit -c 0; "$REPRISE" run -- "$program" 7ef080000000 die) >out 2>err
[ $? = 139 ] || wrong "without a handler: not SIGSEGV"
grep -q '^reprise: the program wrote to 7ef080000000' err || wrong "without a handler: $(cat err)"
finish

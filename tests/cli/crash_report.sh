#!/bin/bash
# When the runtime itself faults it says where, by name, and leaves with 125.
. "$TESTS/cli/expect.sh"
"$REPRISE" run --debug crash=1 -- /bin/true >out 2>err
[ $? = 125 ] || wrong "status is not 125"
for line in 'internal error: signal 11 (code 1) at [0-9a-f]*, address 10' '  in the runtime: crash_on_purpose+0x[0-9a-f]* (reprise-rt+0x[0-9a-f]*)' \
    '  guest pc [0-9a-f]*, thread [0-9]*' '  rax [0-9a-f]* rcx' '  on the stack: start_here+0x'; do
    grep -q "^reprise: $line" err || wrong "the report lacks '$line': $(head -12 err)"
done
finish

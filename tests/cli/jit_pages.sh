#!/bin/bash
# A page of code that is written all the time has blocks that check themselves, instead of a fault for each write; but only as long
# as it is written.
. "$TESTS/cli/expect.sh"
"$REPRISE" run --debug stats=1 -- "$BUILD/guest/jit_pages" >out 2>err || wrong "exit $?: $(head -3 err)"
read -r written checked worn <<<"$(grep 'pages of code written' err | tr -dc '0-9 ')"
[ "$written" -lt 3000 ] || wrong "too many faults: $written"
[ "$worn" -ge 3 ] && [ "$worn" -le "$checked" ] || wrong "checked $checked times, $worn times no longer"
finish

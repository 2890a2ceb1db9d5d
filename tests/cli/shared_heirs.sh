#!/bin/bash
# What a process owned that ended in good order is taken as it is, also when its ring is another's by then: the contents of a page
# are logged only where its owner was killed.
. "$TESTS/cli/expect.sh"
"$REPRISE" record -o rec -- "$BUILD/shared/heirs" >out || wrong "status $?"
taken=$("$REPRISE" dump rec | grep -c ' ACQUIRE ')
logged=$("$REPRISE" dump rec | grep -c ' MEMORY ')
[ "$taken" -ge 400 ] || wrong "only $taken pages were taken"
[ "$logged" -lt 20 ] || wrong "the contents of $logged pages are in the log, of $taken that were taken"
finish

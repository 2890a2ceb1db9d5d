#!/bin/bash
# A thread that leaves the cache at a tick point goes on inside the block it left: no block is made for the place, which would
# cut the loop around it in pieces.
. "$TESTS/cli/expect.sh"
blocks() {
    "$REPRISE" run --no-cache --debug policy=ticks --debug trace=1 "$@" -- "$BUILD/guest/sig_basic" 2>&1 >/dev/null |
        grep -c '^reprise: block '
}
want=$(blocks)
got=$(blocks --debug tick-trace=3)
[ "$got" = "$want" ] || wrong "$got blocks when every third tick leaves the cache, $want without"
finish

#!/bin/bash
# Translations are kept though accesses to a contended page leave the code cache, which is this process's business alone.
. "$TESTS/cli/kept.sh"
program=$BUILD/shared/contended
lacked() { # how many blocks a recording translates
    rm -rf rec
    "$REPRISE" record -o rec --debug trace=1 -- "$program" 2>&1 >/dev/null | grep -c '^reprise: block '
}
cold=$(lacked)
for i in 1 2 3; do lacked >/dev/null; done
warm=$(lacked)
[ "$cold" -ge 1000 ] || wrong "only $cold blocks the first time"
[ "$warm" -lt 200 ] || wrong "$warm blocks are translated again, of $cold"
"$REPRISE" dump rec | grep -q ' INSN  *shared ' || wrong "nobody contended: the test shows nothing"
finish

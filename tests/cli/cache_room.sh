#!/bin/bash
# The dynamic linker's region has room for what all programs need of it: what does not fit is translated by every process.
. "$TESTS/cli/kept.sh"
programs() {
    cat <<'LIST'
/bin/true
/usr/bin/expr 1 + 1
/bin/ls -l /
/usr/bin/python3 -c import\ json,zlib,ctypes
/usr/bin/perl -MPOSIX -e 1
/usr/bin/gcc --version
/usr/bin/as --version
/bin/bash -c :
/usr/bin/env LD_BIND_NOW=1 /usr/bin/sort /dev/null
/usr/bin/env LD_DEBUG=statistics /bin/true
/usr/bin/env LD_PRELOAD=libm.so.6 /bin/true
LIST
}
each() { programs | while read -r line; do "$@" $line </dev/null; done; }
# Blocks that were translated into memory of the process alone. The vDSO (1ffc0000 and above) is no file's; how much of it runs depends on
# the machine's clock.
lost() { "$REPRISE" run --debug trace=1 -- "$@" 2>&1 >/dev/null | grep '^reprise: block .* host 4[4-9ab]' | grep -v 'guest 1ff[c-f]'; }
for i in 1 2 3; do each run >/dev/null 2>&1; done
n=$(each lost | wc -l)
[ "$n" -lt 10 ] || wrong "$n blocks have no room in the region of their file"
finish

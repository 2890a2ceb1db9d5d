#!/bin/bash
# `why` and `elapsed` in gdb: the answers, and that the present place stays what it is.
set -u
command -v gdb >/dev/null || exit 77
export REPRISE_DIR=$PWD/rd ORIGIN=xyzzy
bad=0
wrong() {
    echo "wrong: $*"
    bad=1
}
expect() { grep -q -e "$1" out || wrong "no \"$1\""; }
/usr/bin/python3 -c 'open("data", "wb").write(bytes(range(200)) + b"0012345\0" + bytes(range(256)))'
"$REPRISE" record -o rd/t -- "$BUILD/replay/origins" data AB >/dev/null 2>&1
cat >commands <<'S'
set pagination off
break *main
when
print $sp
monitor why $rdx
why -n 3 from_file
why by_struct.second
why
elapsed
when
print $sp
x/i $pc
reverse-continue
when
why from_file
S
timeout 100 "$REPRISE" replay -e -x commands t -- -batch >out 2>&1
expect 'constant of the program: 0x6'
expect 'from_a_file () at .*origins.c:'
expect 'an input: read(3, .*, 32) = 32: offset 124 of "data"'
expect ', 8 bytes = 0x4e$'
expect '^why \[-n N\] EXPR'
expect '^[0-9.]* s after the recording began, at 20'
expect '8 bytes: as the program found it when it began'
[ "$(grep '^Position' out | head -2 | sort -u | wc -l)" = 1 ] || wrong "the place has changed"
[ "$(grep '^Position' out | sort -u | wc -l)" = 2 ] || wrong "reverse-continue has not moved"
[ "$(sed -n 's/^\$[12] = //p' out | sort -u | wc -l)" = 1 ] || wrong "registers have changed"
[ $bad = 0 ] || cat out
exit $bad

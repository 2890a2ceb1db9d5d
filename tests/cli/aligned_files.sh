#!/bin/bash
# A library with segments that want 2 MB of alignment is mapped into room that the dynamic linker has reserved before: it lies where any library
# does, and its translations are kept.
. "$TESTS/cli/kept.sh"
command -v gcc >/dev/null || { echo "no compiler"; exit 77; }
{
    for i in $(seq 300); do echo "int f$i(int x) { return x % 7 > 3 ? x * $i : x + $i; }"; done
    echo "int all(int x) {"
    for i in $(seq 300); do echo "x = f$i(x);"; done
    echo "return x; }"
} >lib.c
echo 'int printf(const char *, ...); int all(int); int main(void) { printf("%d\n", all(3)); return 0; }' >main.c
gcc -O0 -shared -fPIC -Wl,-z,max-page-size=0x200000 -o libaligned.so lib.c || wrong "the library is not built"
gcc -O0 -o main main.c -L. -laligned -Wl,-rpath,"$PWD" || wrong "the program is not built"
sleep 1 # files that changed a moment ago are not kept
same ./main
warm_up ./main
is_warm ./main
export REPRISE_DIR=$PWD/recordings
./main >native
"$REPRISE" record -- ./main >recorded || wrong "record: status $?"
"$REPRISE" replay -a >replayed || wrong "replay: status $?"
cmp -s native recorded && cmp -s native replayed || wrong "$(cat native recorded replayed)"
finish

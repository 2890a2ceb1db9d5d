#!/bin/bash
# `reprise why`: values whose origin is known, each by another way (origins.c).
set -u
export REPRISE_DIR=$PWD/rd ORIGIN=xyzzy
program=$BUILD/replay/origins
bad=0
wrong() {
    echo "wrong: $*"
    bad=1
}
# asks WHAT, and looks for these texts in the answer, in this order
origin() {
    local what=$1 rest
    shift
    "$REPRISE" why -n 6 t "$what" >out 2>err || wrong "$what: $(cat err)"
    rest=$(cat out)
    for text in "$@"; do
        case $rest in
            *"$text"*) rest=${rest#*"$text"} ;;
            *) wrong "$what: no \"$text\" in its place:"; cat out; return ;;
        esac
    done
}

/usr/bin/python3 -c '
b = bytearray(range(256)) * 2
b[200:208] = b"0012345\0"
open("data", "wb").write(b)'
"$REPRISE" record -o rd/t -- "$program" data AB >recorded 2>/dev/null
[ $? = 134 ] || wrong "record: $?"
read -r moved remapped _ <recorded

origin constant 'main () at' '8 bytes: 0 -> 0x5' 'a constant of the program: 0x5'
origin by_registers 'through_registers' '$rax by mov %rdi, %rax' 'add $0x106a, %rdi, from $rdi = 0x28' 'as it is in' 'replay/origins'
origin by_memcpy 'through_memcpy' '#2' ' -> 0x21' '#3' 'by movb $0x21' 'constant of the program: 0x21'
origin by_struct 'through_struct' 'xmm' '#2' '$0x4e' 'a constant of the program: 0x4e'
origin pairs ', 64 bytes = ' ', 8 bytes: 0 -> 0x4e' 'a constant of the program: 0x4e' # of much, what has changed
origin from_file 'from_a_file' '#2' 'an input: read(3, ' ', 32) = 32: offset 124 of "data"'
origin text 'an input: pread64(3, ' ', 8, 200) = 8: offset 200 of "data"'
origin from_file_deep 'add $0x1, %rax, from $rax = 0x3039'
origin from_mapping 'an input: mmap(' 'offset 300 of "data"'
origin from_argument 'an input: argument 2 of the program, "AB"'
origin from_environment 'an input: the environment, "ORIGIN=xyzzy"'
origin from_argc 'an input: the number of arguments of the program, 3'
origin variable 'an input: the address of what the environment has, "ORIGIN=xyzzy"'
origin from_thread 'from_another_thread' '#2' 'other_thread () at' '0x5 -> 0x63' 'lea (%rdi,%rdi,2), %rax, from $rdi = 0x21' 'pthread_create'
origin from_sum 'add $0x186a0, %rax, from $rax = 0x3' 'as it is in'
origin from_call 'an input: the result of getppid() = '
origin '$rdi' '$rax by syscall' 'an input: the result of getpid() = ' # where abort() has killed it
origin '$rdx' '$r12' 'raise ()' 'a constant of the program: 0x6'
origin same_again '0x9 -> 0x9' 'a constant of the program: 0x9'
origin "$moved" '-> 0x3e9' 'from 0x' '#2' 'through_realloc' '0 -> 0x3e9' 'movq $0x3e9'
origin "$remapped" "moved here from 0x" 'mremap(' 'through_realloc' '0 -> 0x7d2'

# two threads in the answer
"$REPRISE" why -n 2 t from_thread | sed -n 's/^#[12].*  thread \([0-9]*\)  .*/\1/p' >threads
[ "$(sort -u threads | wc -l)" = 2 ] || wrong "threads: $(cat threads)"

# as JSON, and from another place
"$REPRISE" why --json -n 3 t from_file | /usr/bin/python3 -c '
import json, sys
steps = [json.loads(line) for line in sys.stdin]
assert [s["kind"] for s in steps] == ["write", "register", "input"], steps
assert steps[0]["function"] == "from_a_file" and steps[0]["line"] and steps[2]["after"] == "7c7d7e7f80818283", steps
print(steps[0]["position"])' >position || wrong "JSON"
"$REPRISE" why --at "$(cat position)" t from_file | grep -q '8 bytes: as the program found it when it began' ||
    wrong "before the first store"
if command -v gdb >/dev/null; then
    "$REPRISE" why t 'by_struct.second' | grep -q ' 8 bytes = 0x4e$' || wrong "an expression"
fi
"$REPRISE" why t no_such_variable 2>err && wrong "no such variable"
grep -q 'no address, register or variable' err || wrong "$(cat err)"
exit $bad

#!/bin/bash
# gdb itself on the fake target: what it asks is answered, and its commands do to the target what they say.
. "$TESTS/cli/expect.sh"
command -v gdb >/dev/null || exit 77
export FAKE_PROGRAM=$BUILD/gdb/fake_program HOME=$PWD TMPDIR=/tmp
unset XDG_RUNTIME_DIR DEBUGINFOD_URLS
replay=$BUILD/gdb/fake_replay

# session ARGS... -- COMMAND...: each command in one gdb; output in `out`
session() {
    local args=() commands=()
    while [ "$1" != -- ]; do
        args+=("$1")
        shift
    done
    shift
    for c; do commands+=(-ex "$c"); done
    timeout 50 "$replay" "${args[@]}" -- -nx -batch "${commands[@]}" </dev/null >out 2>&1
    status=$?
}
# The lines of `out` contain these, in this order.
said() {
    local line want=("$@") i=0
    while IFS= read -r line; do
        [[ $i -lt ${#want[@]} && $line == *"${want[i]}"* ]] && i=$((i + 1))
    done <out
    [ $i = ${#want[@]} ] || wrong "not said: '${want[i]}' (after '${want[i - 1]}') in: $(head -c 3000 out)"
}

# registers, memory, symbols, threads
session -- 'p $rax' 'p/x $rbx' 'p/x $eflags' 'p/x $cs' 'p/x $fs_base' 'p/x $orig_rax' 'p/x $mxcsr' 'p/x $fctrl' \
    'p/x $xmm1.v4_int32' 'p/x $ymm1.v8_int32[4]' 'p/x $zmm1.v16_int32[8]' 'p/x $xmm16.v4_int32[0]' 'p/x $k1' 'p/x $pkru' \
    'info symbol $pc' 'x/2i $pc' 'info threads' 'info inferiors' 'info auxv' 'info proc mappings' 'thread 3' 'p $rbx'
said '$1 = 0' '$2 = 0x3e8' '$3 = 0x246' '$4 = 0x33' '$5 = 0x7000' '$6 = 0xffffffffffffffff' '$7 = 0x1f80' '$8 = 0x37f' \
    '{0x2c2c2c2c, 0x2d2d2d2d, 0x2e2e2e2e, 0x2f2f2f2f}' '= 0x94949494' '=' '=' '=' '=' '_start in section .text' 'nop' \
    'worker <0>" (running)' 'worker <2>" (waits & waits)' 'process 4242' 'AT_PAGESZ' '/fake/program' 'thread 3' '= 1002'
[ $status = 0 ] || wrong "exit $status"

# a step, forwards and backwards; the begin; a position
session -q -- 'stepi' 'p $rax' 'reverse-stepi' 'p $rax' 'reverse-stepi' 'seek 3:4' 'p $rax' 'when' 'checkpoint' 'stepi' \
    'restart 1' 'p $rax' 'info checkpoints' 'restart' 'p $rax' 'seek 3:x' 'restart 7'
said '$1 = 1' '$2 = 0' 'No more reverse-execution history' '$3 = 304' 'Position 3:4:0' 'Checkpoint 1 at 3:4:0' '$4 = 304' \
    '1  3:4:0' '$5 = 0' 'A position is' 
session -g 12:34 -- 'p $rax' 'info recording'
said 'At 12:34:0' '= 1234' 'info recording'
session -e -- 'p $rax'
said 'At the end (1000:0:0)' '= 100000'

# breakpoints: forwards, backwards, conditions that are evaluated here (a thousand hits would take gdb long)
session -q -n 10000000 -- 'break *0x401010' 'continue' 'p $rax' 'continue' 'p $rax' 'reverse-continue' 'p $rax' \
    'condition 1 $rax > 3000000' 'continue' 'p $rax' 'reverse-continue' 'delete' 'hbreak *0x401011' 'continue' 'p $rax'
said 'Breakpoint 1, 0x0000000000401010' '$1 = 16' '$2 = 116' '$3 = 16' '$4 = 3001264' 'No more reverse' '$5 = 17'

# watchpoints: before and after the write; a thousand of them cost no more than one
session -q -- 'watch *(long *)0x404010' 'continue' 'continue' 'p $rax' 'reverse-continue' 'p $rax' 'delete' \
    'rwatch *(long *)0x404018' 'continue' 'delete' 'awatch *(long *)0x404020' 'continue'
said 'Hardware watchpoint 1' 'Old value = 0' 'New value = 3' 'Old value = 3' 'New value = 19' '$1 = 19' \
    'Old value = 19' 'New value = 3' '$2 = 18' 'read watchpoint 2' 'access (read/write) watchpoint 3'
many=(-ex 'set height 0')
for i in $(seq 0 999); do many+=(-ex "watch *(char *)$((0x404100 + i))"); done
timeout 50 "$replay" -q -n 1000000 -- -nx -batch "${many[@]}" -ex 'continue' -ex 'p $rax' -ex 'reverse-continue' \
    -ex 'p $rax' </dev/null >out 2>&1
said 'Hardware watchpoint 1000' '$1 = 1000000' '$2 = 0'

# threads: stepping one lets the others do what they did
session -q -- 'thread 2' 'stepi' 'p $rax' 'p $rbx' 'reverse-stepi' 'p $rax'
said '$1 = 101' '$2 = 1001' '$3 = 100'

# what is written is gone when the recording goes on
session -q -- 'stepi 20' 'set var *(long *)0x404018 = 77' 'p *(long *)0x404018' 'set $rbx = 5' 'p $rbx' 'stepi' \
    'p *(long *)0x404018' 'p $rbx'
said '$1 = 77' '$2 = 5' '$3 = 20' '$4 = 1000'

# the end (backwards from it is where that thread ran before), and from the begin
session -q -- 'continue' 'p $rax' 'reverse-stepi' 'p $rax' 'monitor exits end' 'continue' 'info inferiors'
said 'exits here with status 3' '$1 = 100000' '$2 = 99799' 'exited with code 03'
session -q -- 'stepi 50' 'break *0x401010' 'run' 'p $rax' 'kill' 'info threads'
said 'Breakpoint 1, 0x' '= 16' 'No threads'
session -q -- 'detach' 'attach 4242' 'p $rax' 'disconnect'
said 'detached' '= 0'

export FAKE_EXE=$PWD/prog
# gdb gets the files of the recording: those of this machine while they are the same, else what the recording keeps
cat >prog.c <<'C'
#include <stdio.h>
const int answer = 42;
int main(void) { return puts("here") < 0; }
C
gcc -g -no-pie -o prog prog.c && REPRISE_DIR=$PWD/rd "$REPRISE" record -o rec ./prog >out 2>&1 || wrong "record: $(cat out)"
session -q -r rec -- 'set trust-readonly-sections on' 'p answer' 'info inferiors' 'show sysroot'
said '= 42' "$PWD/prog" 'root is "/"'
sed -i 's/42/43/' prog.c && gcc -g -no-pie -o prog prog.c
session -q -r rec -- 'set trust-readonly-sections on' 'p answer' 'info inferiors' 'show sysroot' 'shell ls -lR $(sed -n "s/^set sysroot //p" /tmp/reprise-*/commands)'
said '= 42' "/root$PWD/prog" 'root"' 'lib -> usr/lib' 'libc.so.6 -> /usr/lib'
rm prog
session -q -r rec -- 'set trust-readonly-sections on' 'p answer' 'list answer'
said '= 42' 'const int answer'
unset FAKE_EXE

# gdb's status is ours; a target that cannot be opened, a gdb that is not there
timeout 20 "$replay" -- -nx -batch -ex 'quit 9' </dev/null >out 2>&1
[ $? = 9 ] || wrong "the status is not gdb's"
echo 'p 111 * 3' >file
timeout 20 "$replay" -q -x file -- -nx -batch </dev/null >out 2>&1
said '$1 = 333'
timeout 20 "$replay" -n 0 </dev/null >out 2>&1
[ $? = 125 ] || wrong "no target: not 125"
FAKE_GDB=/nonexistent/gdb timeout 20 "$replay" </dev/null >out 2>&1
[ $? = 125 ] || wrong "no gdb: not 125: $(cat out)"

# Ctrl-C, from the terminal's side: gdb gets SIGINT, the program stops, and can go back
python3 - "$replay" <<'PY' || wrong "Ctrl-C"
import os, signal, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], "-q", "-n", str(1 << 60), "--", "-nx", "-i=mi"], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
signal.alarm(40)
def until(what):
    while True:
        line = p.stdout.readline()
        if not line or what in line: return line
until("(gdb)")
p.stdin.write("1-exec-continue\n"); p.stdin.flush()
until("*running")
time.sleep(0.3)
os.kill(p.pid, signal.SIGINT)
assert 'signal-name="SIGINT"' in until("*stopped")
p.stdin.write("2-exec-continue --reverse\n"); p.stdin.flush()
assert until("No more reverse-execution history") and until("*stopped")
p.stdin.write("3-data-evaluate-expression $rax\n"); p.stdin.flush()
assert 'value="0"' in until("3^done")
p.stdin.write("-gdb-exit\n"); p.stdin.flush()
assert p.wait() == 0
PY

# a port: debuggers come and go until one kills; only loopback
"$replay" -s 0 >port 2>&1 &
server=$!
for i in $(seq 100); do
    grep -q extended-remote port && break
    sleep 0.05
done
address=$(sed -n 's/.*extended-remote //p' port)
case $address in
    127.0.0.1:*) ;;
    *) wrong "port: $(cat port)" ;;
esac
connect() { timeout 20 gdb -nx -batch "$@" </dev/null >out 2>&1; }
connect -ex "target extended-remote $address" -ex 'stepi 3' -ex 'p $rax'
said '= 3'
connect -ex "target remote $address" -ex 'p $rax' -ex 'stepi' -ex 'disconnect'
said '= 3'
connect -x "$(sed -n 's/^reprise: gdb -x //p' port)" -ex 'p $rax' -ex when
said 'At 0:4:0' '= 4' 'Position 0:4:0'
exec 9<>"/dev/tcp/${address%:*}/${address#*:}" && printf 'GET / HTTP/1.1\r\n\r\n' >&9
timeout 5 cat <&9 | grep -q . && wrong "a browser was answered"
exec 9>&-
connect -ex "target extended-remote $address" -ex 'kill'
for i in $(seq 100); do
    kill -0 $server 2>/dev/null || break
    sleep 0.05
done
kill -0 $server 2>/dev/null && wrong "the server outlives kill" && kill $server
wait $server
[ $? = 0 ] || wrong "the server's status"

# nothing is left behind
sleep 0.5
for dir in $(sed -n 's,.*gdb -x \(.*\)/commands,\1,p' port); do [ ! -e "$dir" ] || wrong "$dir was left behind"; done
finish

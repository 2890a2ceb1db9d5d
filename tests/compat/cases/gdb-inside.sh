# needs: gdb gcc
# timeout: 200
# gdb inside, with a program of its own: breakpoints, steps, registers, changed variables, a signal, threads
# and shared libraries (what it says of threads by way of libthread_db is left out)
cat >g.c <<'S'
#include <stdio.h>
#include <signal.h>
#include <pthread.h>
static int add(int a, int b) { int c = a + b; return c * 2; }
static void *worker(void *p) { return (void *)(long)add(20, 1); }
int main(int n, char **v) { int s = 0; for (int i = 0; i < 3; i++) s += add(i, n); signal(SIGUSR1, SIG_IGN); raise(SIGUSR1); pthread_t t; void *r; pthread_create(&t, 0, worker, 0); pthread_join(t, &r); printf("sum %d %ld\n", s, (long)r); return s; }
S
gcc -g -O0 -pthread -o g g.c || skip "no compiler"
cat >commands <<'S'
set pagination off
set width 0
break add
run
backtrace
info sharedlibrary
rwatch a
continue
delete 2
p a
next
p c
set var $ymm3.v4_int64[2] = 77
p $ymm3.v4_int64[2]
set var c = 100
delete
break add if a == 2
continue
stepi
p $rip == $pc
finish
delete
handle SIGUSR1 stop nopass
continue
continue
S
$RUN gdb -q -nx -batch -ex 'set debuginfod enabled off' -x commands ./g 2>err | sed -E 's/0x[0-9a-f]+/ADDR/g; s/process [0-9]+/process PID/; s/LWP [0-9]+/LWP N/' | grep -vE 'libthread_db|Thread debugging|^\[(New|Switching|Thread|LWP)|pthread_kill|in \?\? \(\)'

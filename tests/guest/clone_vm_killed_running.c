/* Processes that share memory with their parent are killed by another one, while they compute or make calls. What they have left in
 * memory is printed: a replay has it, too. */
#include "guest.h"
#include <sched.h>

static char stack[1 << 16] __attribute__((aligned(16)));
static volatile long rounds;
static long numbers[4096];
static int word; /* cleared when it ends */

static int add(void *arg) {
    for (;;) rounds++;
    return arg != NULL;
}

static int store(void *arg) {
    for (long i = 0;; i++) {
        numbers[i % 4096] = i * i;
        numbers[(i * 7) % 4096] ^= i;
        rounds++;
    }
    return arg != NULL;
}

static __attribute__((noinline)) long deep(long n) {
    numbers[n] = rounds;
    return n ? deep(n - 1) + 1 : 0;
}

static int call(void *arg) {
    for (;;) rounds += deep(rounds % 50) != 100;
    return arg != NULL;
}

static int talk(void *arg) {
    for (;;) {
        rounds += getppid() > 0;
        numbers[rounds % 4096]++;
    }
    return arg != NULL;
}

static unsigned long sum(void) {
    unsigned long h = (unsigned long)rounds;
    for (int i = 0; i < 4096; i++) h = h * 31 + (unsigned long)numbers[i];
    return h;
}

static void kill_later(int pid, int ms) {
    if (fork() == 0) {
        usleep((useconds_t)ms * 1000);
        kill(pid, SIGKILL);
        _exit(0);
    }
}

int main(void) {
    int (*const bodies[])(void *) = {add, store, call, talk};
    for (int i = 0; i < 24; i++) {
        int status = 0, flags = CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD;
        rounds = 0;
        word = 1;
        int pid = clone(bodies[i % 4], stack + sizeof stack, flags, NULL, NULL, NULL, &word);
        CHECK(pid > 0);
        while (rounds < 500) sched_yield(); /* its code is known to the translator by then */
        kill_later(pid, 3 + i % 5);
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK(word == 0);
        printf("%ld rounds, %lx\n", rounds, sum());
        CHECK(wait(&status) > 0 && status == 0);
        for (volatile int k = 0; k < 100000; k++) {}
    }
    fflush(stdout);
    syscall(SYS_exit, finish()); /* the last thread: the process ends */
}

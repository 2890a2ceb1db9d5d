// A handler looks at the interrupted pc and registers, in code with calls, returns and string instructions.
#include "race.h"
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>
static volatile uint64_t digest;
static volatile int hits, depths[8];
static volatile int depth;
static void handler(int s, siginfo_t *i, void *context) {
    ucontext_t *u = context;
    for (int r = 0; r < 17; r++) digest = mix(digest, (uint64_t)u->uc_mcontext.gregs[r]);
    depths[depth & 7]++;
    hits++;
}
static uint64_t fib(int n) {
    depth = n;
    return n < 2 ? 1 : fib(n - 1) + fib(n - 2);
}
int main(void) {
    struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    struct itimerval it = {{0, 800}, {0, 800}};
    static char a[4096], b[4096];
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &it, NULL);
    uint64_t sum = 0, rounds = 0;
    for (; hits < 20 && rounds < 100000; rounds++) {
        sum += fib(12);
        memmove(a, b, sizeof a);
        b[rounds % 4096] ^= (char)sum;
    }
    memset(&it, 0, sizeof it);
    setitimer(ITIMER_REAL, &it, NULL);
    printf("%d hits in %lu rounds, %016lx; ", hits, rounds, digest);
    for (int i = 0; i < 8; i++) printf("%d ", depths[i]);
    puts("");
    return 0;
}

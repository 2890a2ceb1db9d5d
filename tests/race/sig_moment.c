// A timer hits a computation at exact moments that only the log knows.
#include "race.h"
#include <signal.h>
#include <sys/time.h>
static volatile uint64_t state = 1, step, digest;
static volatile int hits;
static void handler(int s) {
    digest = mix(digest, state ^ step);
    hits++;
}
int main(void) {
    struct itimerval it = {{0, 900}, {0, 300}};
    signal(SIGVTALRM, handler);
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &it, NULL);
    for (step = 0; hits < 25 && step < 100000000; step++) state = mix(state, step);
    memset(&it, 0, sizeof it);
    setitimer(ITIMER_REAL, &it, NULL);
    printf("%d hits in %lu steps, %016lx, %016lx\n", hits, step, digest, state);
    return 0;
}

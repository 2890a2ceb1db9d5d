// Ping-pong by spinning with sched_yield: how often each side looked is a race.
#include "race.h"
static volatile int ball;
static volatile long spins[2];
static volatile uint64_t digest[2];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    uint64_t h = 0;
    for (int i = 0; i < 400; i++) {
        long n = 0;
        while (ball != me && n < 100000) {
            n++;
            sched_yield();
        }
        spins[me] += n;
        h = mix(h, (uint64_t)n);
        ball = !me;
    }
    digest[me] = h;
    return NULL;
}
int main(void) {
    race(2, body);
    for (int i = 0; i < 2; i++) printf("side %d looked %ld times, %016lx\n", i, spins[i], digest[i]);
    return 0;
}

/* Two threads on one processor that yield all the time take turns, more often than not. */
#include "guest.h"

#include <sched.h>

#define ROUNDS 400

static volatile int last, alternated, ready[2];

static void *yields(void *arg) {
    int self = (int)(intptr_t)arg;
    ready[self] = 1;
    while (!ready[!self]) sched_yield();
    for (int i = 0; i < ROUNDS; i++) {
        if (last != self) alternated++;
        last = self;
        sched_yield();
    }
    return NULL;
}

int main(void) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof cpus, &cpus);
    for (int cpu = 0, found = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus) && found++) CPU_CLR(cpu, &cpus);
    CHECK(sched_setaffinity(0, sizeof cpus, &cpus) == 0);
    pthread_t t;
    pthread_create(&t, NULL, yields, (void *)1);
    yields(0);
    pthread_join(t, NULL);
    CHECK(alternated > ROUNDS);
    return finish();
}

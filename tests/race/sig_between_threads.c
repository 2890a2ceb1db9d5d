// Threads signal each other while they compute.
#include "race.h"
#include <signal.h>
static pthread_t thread[3];
static volatile int ready, got[3];
static volatile uint64_t digest[3], progress[3];
static __thread int self;
static void handler(int s) {
    got[self]++;
    digest[self] = mix(digest[self], progress[self] ^ progress[(self + 1) % 3] << 32);
}
static void *body(void *arg) {
    self = (int)(intptr_t)arg;
    thread[self] = pthread_self();
    __atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
    for (int spin = 0; ready < 3 && spin < 100000; spin++) sched_yield();
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 30000; k++) progress[self]++;
        pthread_kill(thread[(self + 1 + i % 2) % 3], SIGUSR1);
    }
    __atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
    for (int spin = 0; ready < 6 && spin < 100000; spin++) sched_yield();
    return NULL;
}
int main(void) {
    signal(SIGUSR1, handler);
    race(3, body);
    for (int i = 0; i < 3; i++) printf("thread %d got %d, %016lx\n", i, got[i], digest[i]);
    return 0;
}

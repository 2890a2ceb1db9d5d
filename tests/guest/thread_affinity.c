/* Threads that take turns all the time: each may run where it might before, and where it has asked to. */
#define _GNU_SOURCE
#include "guest.h"
#include <sched.h>

static cpu_set_t all;
static volatile int turn, wrong;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void expect(const cpu_set_t *want) {
    cpu_set_t now;
    CHECK(sched_getaffinity(0, sizeof now, &now) == 0);
    if (!CPU_EQUAL(&now, want)) wrong++;
}

static void *takes_turns(void *arg) {
    int self = (int)(long)arg;
    cpu_set_t own = all;
    for (int i = 0; i < 400; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != self) pthread_cond_wait(&changed, &mutex);
        expect(&own);
        if (self == 1 && i == 200) {
            int last = CPU_SETSIZE - 1;
            while (!CPU_ISSET(last, &all)) last--;
            CPU_ZERO(&own);
            CPU_SET(last, &own);
            CHECK(sched_setaffinity(0, sizeof own, &own) == 0);
        }
        turn = (turn + 1) % 3;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *computes(void *n) {
    for (int round = 0; round < 20; round++) {
        for (volatile long i = 0; i < 1000000; i++) continue;
        expect(&all);
    }
    return n;
}

int main(void) {
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    for (int kind = 0; kind < 2; kind++) {
        pthread_t t[3];
        for (long i = 0; i < 3; i++) CHECK(pthread_create(&t[i], NULL, kind ? computes : takes_turns, (void *)i) == 0);
        for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
        expect(&all);
    }
    printf("%d wrong\n", wrong);
    return wrong != 0;
}

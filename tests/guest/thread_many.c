/* Thousands of short-lived threads, joined, detached and with small stacks. */
#include "guest.h"
#include <semaphore.h>

static sem_t gone;
static void *square(void *n) { return (void *)((long)n * (long)n); }
static void *detached(void *n) {
    sem_post(&gone);
    return n;
}
static void *spawns(void *n) {
    pthread_t t;
    void *r = NULL;
    if ((long)n > 0) pthread_create(&t, NULL, spawns, (void *)((long)n - 1)), pthread_join(t, &r);
    return (void *)((long)r + 1);
}

int main(void) {
    long sum = 0;
    for (long i = 0; i < 3000; i++) {
        pthread_t t;
        void *r;
        if (pthread_create(&t, NULL, square, (void *)i)) return puts("FAIL: create"), 1;
        pthread_join(t, &r);
        sum += (long)r;
    }
    printf("one by one: %ld\n", sum);

    sum = 0;
    for (int round = 0; round < 20; round++) {
        pthread_t t[50];
        void *r;
        for (long i = 0; i < 50; i++) CHECK(pthread_create(&t[i], NULL, square, (void *)i) == 0);
        for (long i = 0; i < 50; i++) pthread_join(t[i], &r), sum += (long)r;
    }
    printf("fifty at a time: %ld\n", sum);

    sem_init(&gone, 0, 0);
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&a, 32768);
    for (long i = 0; i < 500; i++) {
        pthread_t t;
        while (pthread_create(&t, &a, detached, NULL)) sched_yield();
    }
    for (int i = 0; i < 500; i++) sem_wait(&gone);
    void *r = spawns((void *)100);
    printf("detached 500, nested %ld\n", (long)r);
    return finish();
}

/* What the racy programs share. They race on purpose: what they print tells how the race went. */
#ifndef RACE_H
#define RACE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RACE_UNUSED __attribute__((unused))

/* A running digest of everything that was seen, in its order. */
static inline uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static inline uint64_t mix_bytes(uint64_t h, const void *p, size_t n) {
    for (size_t i = 0; i < n; i++) h = mix(h, ((const unsigned char *)p)[i]);
    return h;
}

/* Some work that the compiler cannot leave out. */
static inline uint64_t work(unsigned n) {
    uint64_t h = n;
    for (unsigned i = 0; i < n; i++) {
        h = mix(h, i);
        __asm__ volatile("" : "+r"(h));
    }
    return h;
}

static inline uint64_t now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static RACE_UNUSED __thread uint32_t race_random = 1;

/* Where it hurts most: now and then somebody else runs between a load and a store. */
static inline void window(void) {
    race_random = race_random * 1664525 + 1013904223;
    if (race_random >> 22 == 77) sched_yield();
}

static RACE_UNUSED pthread_barrier_t race_line;
static RACE_UNUSED volatile int race_missing;
static RACE_UNUSED void *(*race_body)(void *);

static RACE_UNUSED void *race_thread(void *arg) {
    race_random = (uint32_t)mix(now_ns(), (uint64_t)(intptr_t)arg);
    pthread_barrier_wait(&race_line);
    __atomic_sub_fetch(&race_missing, 1, __ATOMIC_SEQ_CST);
    for (int spin = 0; race_missing > 0 && spin < 5000; spin++) __builtin_ia32_pause();
    work(race_random % 4096);
    return race_body(arg);
}

/* Runs n threads, which start together; each gets its number. */
static RACE_UNUSED void race(int n, void *(*body)(void *)) {
    pthread_t t[32];
    race_body = body;
    race_missing = n;
    pthread_barrier_init(&race_line, NULL, (unsigned)n);
    for (intptr_t i = 0; i < n; i++)
        if (pthread_create(&t[i], NULL, race_thread, (void *)i)) exit(99);
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
    pthread_barrier_destroy(&race_line);
}

static RACE_UNUSED void sleep_us(long us) {
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&ts, NULL);
}

#endif

/* What the programs that share memory between processes have in common. They race on purpose: what they print tells how. */
#ifndef TESTS_SHARED_H
#define TESTS_SHARED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static inline uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static inline void *share(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) abort();
    return p;
}

/* Forks n children that run body(number) and end; waits for them. */
static inline void in_children(int n, void (*body)(int)) {
    fflush(stdout);
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            body(i);
            fflush(stdout);
            _exit(0);
        }
    while (wait(NULL) > 0) {}
}

#endif

/* Whether a tracer had to wait for its tracee, on a machine that may be busy. */
#pragma once
#include "guest.h"

struct span {
    pid_t other;
    double began, waited;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds for which it could have run, and others did: the time that a busy machine takes is not the tracer's. */
static double kept_waiting(pid_t pid) {
    char path[40];
    unsigned long long ran, waited = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%llu %llu", &ran, &waited) != 2) waited = 0;
    if (f) fclose(f);
    return (double)waited * 1e-9;
}

static struct span begin(pid_t other) {
    return (struct span){other, now(), kept_waiting(other) + kept_waiting(getpid())};
}

static bool is_late(const struct span *s) {
    double took = now() - s->began;
    return took > 1.9 && took - (kept_waiting(s->other) + kept_waiting(getpid()) - s->waited) > 1;
}

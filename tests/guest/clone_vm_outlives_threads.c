/* A process of several threads, all of which compute, is killed; one that shares its memory computes on, and ends. */
#include "guest.h"
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#define THREADS 3
static char stack[1 << 16] __attribute__((aligned(16)));
static volatile long rounds[THREADS + 1];

static void *computes(void *i) {
    for (;;) rounds[(long)i]++;
    return NULL;
}

static int survivor(void *arg) {
    (void)arg;
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 200000; k++) rounds[THREADS]++;
        close(dup(0));
    }
    _exit(0);
}

static void many_threads(void) {
    pthread_t t;
    for (long i = 0; i < THREADS; i++) pthread_create(&t, NULL, computes, (void *)i);
    CHECK(clone(survivor, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL) > 0);
    for (;;) pause();
}

int main(void) {
    for (int i = 0; i < 6; i++) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(ends[0]);
            many_threads();
        }
        close(ends[1]);
        sleep_ms(15 + 3 * i);
        kill(pid, SIGKILL);
        puts(wait_text(pid));
        struct pollfd p = {.fd = ends[0], .events = POLLIN};
        CHECK(poll(&p, 1, 20000) == 1); /* nobody has the other end any more */
        close(ends[0]);
    }
    return finish();
}

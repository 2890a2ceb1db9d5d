/* A thread that leaves the common table of descriptors, and closes standard output in its own, leaves everybody else's open. */
#include "guest.h"

#include <sched.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif

static void *leaves(void *arg) {
    CHECK(unshare(CLONE_FILES) == 0);
    CHECK(close(1) == 0);
    CHECK(write(1, "not seen\n", 9) == -1 && errno == EBADF);
    CHECK(dup2(2, 1) == 1 && close(1) == 0);
    return NULL;
}

static void *leaves_by_range(void *arg) {
    CHECK(syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) == 0);
    CHECK(write(1, "not seen\n", 9) == -1 && errno == EBADF);
    int fd = open("/dev/null", O_WRONLY);
    CHECK(fd == 0 && dup2(fd, 1) == 1);
    CHECK(write(1, "not seen\n", 9) == 9);
    return NULL;
}

static int shares(void *arg) { return close(1); }

static int has_own(void *arg) { return close(1); }

int main(void) {
    static char stack[65536] __attribute__((aligned(16)));
    pthread_t t;
    pthread_create(&t, NULL, leaves, NULL);
    pthread_join(t, NULL);
    puts("behind a thread that closed its own");
    pthread_create(&t, NULL, leaves_by_range, NULL);
    pthread_join(t, NULL);
    puts("behind a thread that closed all of its own");
    pid_t child = clone(has_own, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
    puts(wait_text(child));
    int copy = dup(1);
    child = clone(shares, stack + sizeof stack, CLONE_VM | CLONE_FILES | SIGCHLD, NULL);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(write(1, "x", 1) == -1 && errno == EBADF);
    CHECK(dup2(copy, 1) == 1);
    puts("behind a process that closed the common one");
    return finish();
}

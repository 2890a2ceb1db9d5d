/* What the programs that trace a vfork() have in common. */
#ifndef TESTS_VFORK_TRACEE_H
#define TESTS_VFORK_TRACEE_H

#include <signal.h>
#include <sys/ptrace.h>

#include "guest.h"

static volatile int seen; /* by children, in their parent's memory */

/* Two children, one that ends and one that executes argv[0] with an argument, which is to end with 6. */
static void make_children(char **argv) {
    int first = 0, second = 0;
    pid_t child = vfork();
    if (child == 0) {
        seen++;
        _exit(9);
    }
    waitpid(child, &first, 0);
    child = vfork();
    if (child == 0) {
        seen++;
        execl(argv[0], argv[0], "again", NULL);
        _exit(2);
    }
    waitpid(child, &second, 0);
    _exit(10 * seen + (WEXITSTATUS(first) == 9 && WEXITSTATUS(second) == 6));
}

static int await(pid_t pid, const char *what) {
    int status = 0;
    CHECK(waitpid(pid, &status, __WALL) == pid);
    if (WIFSTOPPED(status))
        printf("%s: signal %d, event %d\n", what, WSTOPSIG(status), status >> 16);
    else
        printf("%s: %s\n", what, status_text(status));
    return status;
}

/* Without its signals, until the next event. */
static void go(pid_t pid) { CHECK(ptrace(PTRACE_CONT, pid, 0, 0L) == 0); }

#endif

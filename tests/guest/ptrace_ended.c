/* A tracer that was told of the end of its tracee's child: by then the tracee has its SIGCHLD. */
#include "guest.h"

#include <sys/ptrace.h>

#define MEMORY (64 << 20) /* takes a while to give back */

static int go[2];

static void tracee(void) {
    char c;
    CHECK(read(go[0], &c, 1) == 1);
    if (fork() == 0) {
        char *p = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t i = 0; i < MEMORY; i += 4096) p[i] = 1;
        _exit(5);
    }
    _exit(6);
}

static void once(void) {
    CHECK(pipe(go) == 0);
    pid_t child = fork();
    if (child == 0) tracee();
    int status;
    unsigned long grandchild = 0;
    CHECK(ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACEFORK) == 0);
    CHECK(write(go[1], "x", 1) == 1);
    CHECK(waitpid(child, &status, 0) == child && status >> 8 == (SIGTRAP | PTRACE_EVENT_FORK << 8));
    CHECK(ptrace(PTRACE_GETEVENTMSG, child, 0, &grandchild) == 0);
    CHECK(waitpid((pid_t)grandchild, &status, 0) == (pid_t)grandchild && WIFSTOPPED(status));
    CHECK(ptrace(PTRACE_CONT, grandchild, 0, 0) == 0);
    CHECK(waitpid((pid_t)grandchild, &status, 0) == (pid_t)grandchild && WEXITSTATUS(status) == 5);
    CHECK(ptrace(PTRACE_CONT, child, 0, 0) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGCHLD);
    ptrace(PTRACE_CONT, child, 0, SIGCHLD);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 6);
    close(go[0]);
    close(go[1]);
}

int main(void) {
    for (int i = 0; i < 3; i++) once();
    return finish();
}

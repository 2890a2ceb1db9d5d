/* A tracee forks while it hardly gets the processor: by the time it looks, its tracer has followed the child to its end, or let it go. */
#include "guest.h"
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#define ROUNDS 8

static void stay_here(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void go_anywhere(void) {
    cpu_set_t set;
    memset(&set, 0xff, sizeof set);
    sched_setaffinity(0, sizeof set, &set);
}

static pid_t start_busy(void) {
    pid_t pid = fork();
    if (pid) return pid;
    for (;;) sched_getcpu();
}

static _Noreturn void tracee(int go[2]) {
    char c;
    if (read(go[0], &c, 1) != 1) _exit(1);
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        if (child == 0) {
            go_anywhere();
            _exit(0);
        }
        while (waitpid(child, NULL, 0) == -1 && errno == EINTR) continue;
    }
    _exit(7);
}

/* lets_go: children are detached where they begin. */
static void follow(bool lets_go) {
    int go[2], status, forks = 0, ended = 0;
    CHECK(pipe(go) == 0);
    pid_t first = fork(), pid;
    if (first == 0) {
        stay_here();
        setpriority(PRIO_PROCESS, 0, 12);
        tracee(go);
    }
    CHECK(ptrace(PTRACE_SEIZE, first, 0, PTRACE_O_TRACEFORK) == 0);
    CHECK(write(go[1], "g", 1) == 1);
    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        if (WIFEXITED(status)) {
            if (pid == first) CHECK(WEXITSTATUS(status) == 7);
            if (pid == first) break;
            ended++;
            continue;
        }
        if (pid == first && status >> 16 == PTRACE_EVENT_FORK) forks++;
        int signo = status >> 16 || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        ptrace(pid != first && lets_go ? PTRACE_DETACH : PTRACE_CONT, pid, 0, (long)signo);
    }
    printf("forks %d, ends %s\n", forks, (ended == 0) == lets_go ? "as they should" : "missing");
    close(go[0]);
    close(go[1]);
}

int main(void) {
    stay_here();
    pid_t busy = start_busy();
    follow(false);
    follow(true);
    kill(busy, SIGKILL);
    waitpid(busy, NULL, 0);
    return finish();
}

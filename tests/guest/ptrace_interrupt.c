/* A tracee is interrupted while it is stopped: it stops again when it has been let go, whatever it was about to do. */
#include "guest.h"
#include <sys/ptrace.h>

static volatile unsigned long rounds;

static void computes(int signo) {
    (void)signo;
    for (;;) rounds++;
}

static int child(bool in_handler) {
    signal(SIGUSR1, in_handler ? computes : SIG_DFL);
    for (;;) in_handler ? (void)rounds++ : (void)pause();
}

static int stop_of(pid_t pid) {
    int status = 0;
    for (int i = 0; i < 5000; i++) {
        if (waitpid(pid, &status, WNOHANG | __WALL) == pid) return status >> 8;
        usleep(1000);
    }
    return -1; /* it goes on */
}

#define TRAP_STOP (SIGTRAP | PTRACE_EVENT_STOP << 8)

static pid_t seized(bool in_handler) {
    pid_t pid = fork();
    if (pid == 0) _exit(child(in_handler));
    usleep(20000);
    CHECK(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) == 0);
    CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
    CHECK(stop_of(pid) == TRAP_STOP);
    return pid;
}

static void finish_with(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, __WALL);
}

/* Stopped in front of a call that waits. */
static void before_call(void) {
    pid_t pid = seized(false);
    int stop;
    CHECK(ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0);
    while ((stop = stop_of(pid)) == TRAP_STOP) ptrace(PTRACE_SYSCALL, pid, 0, 0);
    CHECK(stop == (SIGTRAP | 0x80)); /* pause() ends, or begins */
    CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
    CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
    CHECK(stop_of(pid) == TRAP_STOP);
    finish_with(pid);
}

/* Stopped for a signal whose handler computes for ever. */
static void before_handler(void) {
    pid_t pid = seized(true);
    CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
    usleep(5000);
    kill(pid, SIGUSR1);
    CHECK(stop_of(pid) == SIGUSR1);
    CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
    CHECK(ptrace(PTRACE_CONT, pid, 0, SIGUSR1) == 0);
    CHECK(stop_of(pid) == TRAP_STOP);
    finish_with(pid);
}

int main(void) {
    before_call();
    before_handler();
    return finish();
}

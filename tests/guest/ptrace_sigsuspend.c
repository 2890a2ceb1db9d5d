/* A tracer that comes while its tracee waits with another signal mask, or interrupts it, does not change which mask comes back. */
#include "guest.h"
#include <sys/prctl.h>
#include <sys/ptrace.h>

static void on_signal(int signo) {}

static void tracee(int ready) {
    sigset_t set, old, now;
    sigemptyset(&set), sigaddset(&set, SIGUSR2);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    signal(SIGUSR1, on_signal);
    sigprocmask(SIG_BLOCK, &set, &old);
    CHECK(write(ready, "r", 1) == 1);
    sigsuspend(&old);
    sigprocmask(SIG_BLOCK, NULL, &now);
    printf("SIGUSR2 is blocked: %d, SIGUSR1: %d\n", sigismember(&now, SIGUSR2), sigismember(&now, SIGUSR1));
    _exit(3);
}

int main(void) {
    int ready[2], status;
    char c;
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    if (!pid) tracee(ready[1]);
    CHECK(read(ready[0], &c, 1) == 1);
    wait_asleep(pid, pid);
    CHECK(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0);
    CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("%s\n", status_text(status & 0xffff));
    CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
    wait_asleep(pid, pid);
    kill(pid, SIGUSR1);
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("%s\n", status_text(status));
    CHECK(ptrace(PTRACE_CONT, pid, 0, SIGUSR1) == 0);
    printf("%s\n", wait_text(pid));
    return finish();
}

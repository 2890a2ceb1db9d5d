/* A signal comes while a tracee is stopped at the begin of a call, and its tracer lets go of it there: it is handled, or kills. */
#include <signal.h>
#include <sys/ptrace.h>

#include "guest.h"

static volatile int handled;
static void on(int sig) { (void)sig, handled++; }

static void tracee(void) {
    signal(SIGUSR1, on);
    CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
    raise(SIGSTOP);
    struct timespec left = {0, 20000000};
    while (syscall(SYS_nanosleep, &left, &left) != 0) {}
    _exit(10 + handled);
}

static long entered(pid_t pid) {
    struct __ptrace_syscall_info info;
    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
    return info.op == PTRACE_SYSCALL_INFO_ENTRY ? (long)info.entry.nr : -1;
}

static void round_of(int signo, bool detaches) {
    int status;
    pid_t pid = fork();
    if (pid == 0) tracee();
    CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    CHECK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD) == 0);
    do {
        CHECK(ptrace(PTRACE_SYSCALL, pid, 0, 0L) == 0);
        CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    } while (entered(pid) != SYS_nanosleep);
    kill(pid, signo);
    CHECK(ptrace(detaches ? PTRACE_DETACH : PTRACE_CONT, pid, 0, 0L) == 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFSTOPPED(status)) {
        printf("stopped by %d, ", WSTOPSIG(status));
        CHECK(ptrace(PTRACE_DETACH, pid, 0, (long)WSTOPSIG(status)) == 0);
        CHECK(waitpid(pid, &status, 0) == pid);
    }
    puts(status_text(status));
}

int main(void) {
    for (int i = 0; i < 2; i++) {
        round_of(SIGUSR1, i == 0);
        round_of(SIGTERM, i == 0);
    }
    return finish();
}

/* The return from a signal handler is a system call like others for a tracer: it begins and ends. */
#include "guest.h"
#include <sys/ptrace.h>
#include <sys/user.h>

static void on(int sig) { (void)sig; }

static void child(void) {
    signal(SIGUSR1, on);
    signal(SIGUSR2, on);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    sigset_t both, none;
    sigemptyset(&none);
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    sigprocmask(SIG_BLOCK, &both, NULL);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    sigsuspend(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    raise(SIGUSR1);
    _exit(7);
}

/* Calls of the C library's own choice are left out. */
static bool is_shown(long nr) { return nr == SYS_rt_sigreturn || nr == SYS_tgkill || nr == SYS_exit_group || nr < 0; }

static void show(pid_t pid, long *entered) {
    struct user_regs_struct regs;
    struct __ptrace_syscall_info info;
    ptrace(PTRACE_GETREGS, pid, 0, &regs);
    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        *entered = (long)info.entry.nr;
        if (is_shown(*entered)) printf("%ld begins\n", *entered);
    } else if (is_shown(*entered)) {
        printf("%ld ends: %ld, number %ld\n", *entered, (long)info.exit.rval, (long)regs.orig_rax);
    }
}

int main(void) {
    pid_t pid = fork();
    if (!pid) child();
    int status;
    long entered = -1;
    waitpid(pid, &status, 0);
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
    for (int deliver = 0; WIFSTOPPED(status); waitpid(pid, &status, 0)) {
        if (WSTOPSIG(status) == (SIGTRAP | 0x80))
            show(pid, &entered), deliver = 0;
        else if (WSTOPSIG(status) != SIGSTOP)
            printf("signal %d\n", deliver = WSTOPSIG(status));
        CHECK(ptrace(PTRACE_SYSCALL, pid, 0, (long)deliver) == 0);
    }
    puts(status_text(status));
    return finish();
}

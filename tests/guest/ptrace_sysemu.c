/* Calls that a tracer keeps from being made (PTRACE_SYSEMU), and whose end it asks for all the same. */
#include "guest.h"

#include <sys/ptrace.h>
#include <sys/user.h>

static void child(void) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    long first = syscall(SYS_getppid), second = syscall(SYS_getppid), third = syscall(SYS_getppid);
    long fourth = syscall(SYS_getppid);
    _exit(first == -1 && second == 77 && third == getppid() && fourth == -1 ? 5 : 6);
}

static void go(pid_t pid, int request) {
    int status;
    CHECK(ptrace(request, pid, 0, 0) == 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    if (!WIFSTOPPED(status)) {
        printf("%s\n", status_text(status));
        return;
    }
    struct user_regs_struct r;
    ptrace(PTRACE_GETREGS, pid, 0, &r);
    printf("stopped by %x, call %d, result %ld\n", WSTOPSIG(status), r.orig_rax == SYS_getppid,
           (long)r.rax == getpid() ? 1l : (long)r.rax);
}

int main(void) {
    pid_t pid = fork();
    if (pid == 0) child();
    puts(wait_text(pid) ? "stopped" : "");
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
    struct user_regs_struct r;
    do { /* out of raise */
        ptrace(PTRACE_SYSCALL, pid, 0, 0);
        waitpid(pid, NULL, 0);
        ptrace(PTRACE_GETREGS, pid, 0, &r);
    } while (r.orig_rax != SYS_getppid);
    r.orig_rax = -1;
    ptrace(PTRACE_SETREGS, pid, 0, &r);
    go(pid, PTRACE_SYSCALL); /* the end of the first */
    go(pid, PTRACE_SYSEMU);  /* the second is not made */
    go(pid, PTRACE_SYSCALL); /* but has an end */
    ptrace(PTRACE_GETREGS, pid, 0, &r);
    r.rax = 77;
    ptrace(PTRACE_SETREGS, pid, 0, &r);
    go(pid, PTRACE_SYSCALL); /* the third */
    go(pid, PTRACE_SYSCALL);
    go(pid, PTRACE_SYSEMU);     /* the fourth is not made */
    go(pid, PTRACE_SINGLESTEP); /* a step leads behind it, and no further */
    go(pid, PTRACE_SINGLESTEP);
    go(pid, PTRACE_CONT);
    return finish();
}

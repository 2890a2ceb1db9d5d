/* Traces a program and its threads from call to call, as strace does: signals go on to them, and getppid() fails as the tracer wants.
 * usage: tracer PROGRAM [ARGUMENT...] */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER 33

/* Behind the call, or in front of it, where the result is not there yet. */
static void change_result(pid_t tid) {
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, tid, 0, &r) || r.orig_rax != SYS_getppid || r.rax == (unsigned long)-ENOSYS) return;
    r.rax = (unsigned long)-ANSWER;
    ptrace(PTRACE_SETREGS, tid, 0, &r);
}

/* What goes on to the tracee. */
static int stopped(pid_t tid, int status) {
    int signo = WSTOPSIG(status);
    if (signo == (SIGTRAP | 0x80)) change_result(tid);
    if (signo == (SIGTRAP | 0x80) || signo == SIGTRAP || signo == SIGSTOP) return 0;
    return signo;
}

int main(int argc, char **argv) {
    int status, ended = 0;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP)) return 1;
        execv(argv[1], argv + 1);
        return 1;
    }
    if (waitpid(child, &status, 0) != child ||
        ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE))
        return 1;
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    for (pid_t tid; (tid = waitpid(-1, &status, __WALL)) > 0;) {
        if (WIFSTOPPED(status))
            ptrace(PTRACE_SYSCALL, tid, 0, stopped(tid, status));
        else if (tid == child)
            ended = status;
    }
    printf("%s\n", WIFEXITED(ended) ? "exited" : "killed");
    return argc < 2;
}

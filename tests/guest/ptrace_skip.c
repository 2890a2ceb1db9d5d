/* A tracer calls a system call off where it begins, and says there what its result is; it goes on in each of the ways there are. */
#include "guest.h"
#include <sys/ptrace.h>
#include <sys/user.h>

static void tracee(void) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    for (int i = 0; i < 4; i++) {
        errno = 0;
        long ret = syscall(SYS_getppid);
        printf("tracee: %ld, errno %d\n", ret, errno);
        fflush(stdout);
    }
    for (long nr = -1; nr >= -2; nr--) {
        errno = 0;
        long ret = syscall(nr);
        printf("tracee: number %ld, %ld, errno %d\n", nr, ret, errno);
        fflush(stdout);
    }
    _exit(3);
}

static int go(pid_t pid, int how) {
    int status;
    CHECK(ptrace(how, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

static void to_getppid(pid_t pid, struct user_regs_struct *r) {
    do {
        go(pid, PTRACE_SYSCALL);
        CHECK(ptrace(PTRACE_GETREGS, pid, 0, r) == 0);
    } while (r->orig_rax != SYS_getppid);
}

static void call_off(pid_t pid, long result) {
    struct user_regs_struct r;
    to_getppid(pid, &r);
    r.orig_rax = -1;
    if (result) r.rax = result;
    CHECK(ptrace(PTRACE_SETREGS, pid, 0, &r) == 0);
}

static void show(const char *what, pid_t pid, int status) {
    struct user_regs_struct r;
    CHECK(ptrace(PTRACE_GETREGS, pid, 0, &r) == 0);
    printf("%s: stopped by %x, number %ld, result %ld\n", what, WSTOPSIG(status), (long)r.orig_rax, (long)r.rax);
}

int main(void) {
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) tracee();
    CHECK(waitpid(pid, &status, 0) == pid);
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
    call_off(pid, 45000);
    show("end of the call", pid, go(pid, PTRACE_SYSCALL));
    call_off(pid, -EPIPE);
    show("end of the call", pid, go(pid, PTRACE_SYSCALL));
    call_off(pid, 0);
    show("end of the call", pid, go(pid, PTRACE_SYSCALL));
    call_off(pid, 77);
    struct user_regs_struct r;
    do { /* its own numbers, which nobody changes */
        status = go(pid, PTRACE_SYSCALL);
        CHECK(ptrace(PTRACE_GETREGS, pid, 0, &r) == 0);
        if ((long)r.orig_rax < 0) show("own number", pid, status);
    } while (r.orig_rax != (unsigned long long)-2);
    printf("%s\n", status_text(go(pid, PTRACE_CONT)));
    return finish();
}

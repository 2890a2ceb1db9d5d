// A tracer and its child: stops, registers read and changed, memory, signals held back and replaced, detaching.
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long word = 1;
static volatile sig_atomic_t usr1, usr2;
static void count(int signo) { signo == SIGUSR1 ? usr1++ : usr2++; }

static void say_status(const char *what, int status) {
    if (WIFSTOPPED(status))
        printf("%s: stopped by %d, event %d\n", what, WSTOPSIG(status), status >> 16);
    else if (WIFEXITED(status))
        printf("%s: exited with %d\n", what, WEXITSTATUS(status));
    else
        printf("%s: killed by %d\n", what, WTERMSIG(status));
}

static int wait_for(const char *what, pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) printf("%s: no wait: %s\n", what, strerror(errno));
    say_status(what, status);
    return status;
}

/* Stops with values in rbx and xmm7 that the tracer changes, and returns what it finds there. */
static long marked_stop(long *vector) {
    long found;
    __asm__ volatile("mov $0x1234567, %%rbx\n\t"
                     "movq %%rbx, %%xmm7\n\t"
                     "int3\n\t"
                     "movq %%xmm7, %1\n\t"
                     "mov %%rbx, %0"
                     : "=r"(found), "=r"(*vector)
                     :
                     : "rbx", "xmm7", "memory");
    return found;
}

static void child(void) {
    signal(SIGUSR1, count);
    signal(SIGUSR2, count);
    if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(90);
    raise(SIGSTOP);
    long vector, found = marked_stop(&vector);
    raise(SIGUSR1); /* held back */
    raise(SIGUSR1); /* becomes SIGUSR2 */
    raise(SIGUSR2);
    printf("child: rbx %lx, xmm7 %lx, word %ld, usr1 %d, usr2 %d\n", found, vector, word, usr1, usr2);
    fflush(stdout);
    raise(SIGTERM); /* held back; by then nobody traces us, and we die of the next */
    raise(SIGKILL);
}

static void cont(pid_t pid, int request, long signal) {
    if (ptrace(request, pid, 0, signal)) printf("request %d: %s\n", request, strerror(errno));
}

/* Around what there is of struct user. */
static void user_area(pid_t pid) {
    const long offsets[] = {4, sizeof(struct user_regs_struct), 840, 848, 880, 904, 912, 920, 928, 1024, -8};
    for (unsigned i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKUSER, pid, (void *)offsets[i], 0);
        printf("user %ld: %ld %s", offsets[i], word, strerror(errno));
        printf(", %s\n", ptrace(PTRACE_POKEUSER, pid, (void *)offsets[i], 0) ? strerror(errno) : "set");
    }
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pid_t pid = fork();
    if (pid == 0) child();
    wait_for("first", pid);
    errno = 0;
    printf("peek %ld\n", ptrace(PTRACE_PEEKDATA, pid, (void *)&word, 0));
    printf("poke %ld\n", ptrace(PTRACE_POKEDATA, pid, (void *)&word, 42L));
    printf("peek %ld, ours %ld\n", ptrace(PTRACE_PEEKDATA, pid, (void *)&word, 0), word);
    errno = 0;
    long none = ptrace(PTRACE_PEEKDATA, pid, (void *)8, 0);
    printf("nowhere %ld %s\n", none, strerror(errno));
    cont(pid, PTRACE_CONT, 0);

    wait_for("breakpoint", pid);
    struct user_regs_struct regs;
    ptrace(PTRACE_GETREGS, pid, 0, &regs);
    printf("rbx %llx, code before rip %x, orig_rax %lld, cs %llx\n", regs.rbx,
           (unsigned)ptrace(PTRACE_PEEKTEXT, pid, (void *)(regs.rip - 1), 0) & 0xff, regs.orig_rax, regs.cs);
    siginfo_t info;
    ptrace(PTRACE_GETSIGINFO, pid, 0, &info);
    printf("signal %d code %d\n", info.si_signo, info.si_code);
    regs.rbx = 0x7654321;
    struct iovec v = {&regs, sizeof regs};
    printf("set %ld\n", ptrace(PTRACE_SETREGSET, pid, (void *)1, &v));
    printf("user %lx\n", ptrace(PTRACE_PEEKUSER, pid, (void *)offsetof(struct user, regs.rbx), 0));
    user_area(pid);
    struct user_fpregs_struct fp;
    long got = ptrace(PTRACE_GETFPREGS, pid, 0, &fp);
    printf("fp %ld, mxcsr %x, xmm7 %x\n", got, fp.mxcsr, fp.xmm_space[28]);
    fp.xmm_space[28] = 0x2468ace;
    printf("set %ld\n", ptrace(PTRACE_SETFPREGS, pid, 0, &fp));
    cont(pid, PTRACE_CONT, 0);

    wait_for("usr1", pid);
    cont(pid, PTRACE_CONT, 0);
    wait_for("usr1", pid);
    cont(pid, PTRACE_CONT, SIGUSR2);
    wait_for("usr2", pid);
    cont(pid, PTRACE_CONT, SIGUSR2);
    wait_for("term", pid);
    cont(pid, PTRACE_DETACH, 0);
    wait_for("end", pid);
    errno = 0;
    none = ptrace(PTRACE_CONT, pid, 0, 0);
    printf("gone %ld %s\n", none, strerror(errno));
    return 0;
}

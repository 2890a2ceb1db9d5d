// Single steps: every instruction once, over calls and system calls, into a handler; breakpoints put in and taken out again.
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

extern char walk_begin[], walk_call[], walk_end[], helper_code[];
long walk(void);
__asm__(".globl walk, walk_begin, walk_call, walk_end, helper_code\n"
        "walk: xor %eax, %eax\n"
        "walk_begin: mov $3, %ecx\n"
        "1: inc %eax\n dec %ecx\n jnz 1b\n"
        "call helper_code\n"
        "push %rax\n mov $39, %eax\n syscall\n pop %rax\n" /* getpid */
        "walk_call: call helper_code\n"
        "pushf\n pop %rdx\n"
        "walk_end: ret\n"
        "helper_code: add $10, %eax\n ret\n");

static volatile sig_atomic_t handled;
static void on_signal(int signo) { handled += signo; }

static void child(void) {
    signal(SIGUSR1, on_signal);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    long a = walk(), b = walk();
    raise(SIGUSR1);
    printf("child: %ld %ld, handled %d\n", a, b, handled);
    exit(3);
}

static int resume(pid_t pid, int request, long signal) {
    int status = 0;
    if (ptrace(request, pid, 0, signal)) printf("request %d: %s\n", request, strerror(errno));
    waitpid(pid, &status, 0);
    return status;
}

static char *pc_of(pid_t pid) {
    return (char *)ptrace(PTRACE_PEEKUSER, pid, (void *)offsetof(struct user, regs.rip), 0);
}

static long set_break(pid_t pid, char *at) {
    long old = ptrace(PTRACE_PEEKTEXT, pid, at, 0);
    ptrace(PTRACE_POKETEXT, pid, at, (old & ~0xffl) | 0xcc);
    return old;
}

static void at_break(pid_t pid, char *at, long old, const char *name) {
    siginfo_t info;
    ptrace(PTRACE_GETSIGINFO, pid, 0, &info);
    printf("%s: %+ld, code %d\n", name, (long)(pc_of(pid) - at), info.si_code);
    ptrace(PTRACE_POKETEXT, pid, at, old);
    ptrace(PTRACE_POKEUSER, pid, (void *)offsetof(struct user, regs.rip), at);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pid_t pid = fork();
    if (pid == 0) child();
    int status;
    waitpid(pid, &status, 0);
    long old = set_break(pid, walk_begin);
    printf("status %x\n", resume(pid, PTRACE_CONT, 0));
    at_break(pid, walk_begin, old, "first");
    int steps = 0, codes = 0;
    printf("path:");
    while (pc_of(pid) != walk_end && steps < 100) {
        status = resume(pid, PTRACE_SINGLESTEP, 0);
        if (status != (SIGTRAP << 8 | 0x7f)) printf(" status %x", status);
        siginfo_t info;
        ptrace(PTRACE_GETSIGINFO, pid, 0, &info);
        codes |= 1 << (info.si_code & 31);
        printf(" %ld", (long)(pc_of(pid) - walk_begin));
        steps++;
    }
    printf("\n%d steps, traced %d\n", steps, (codes & 1 << 2 /* TRAP_TRACE */) != 0);
    /* code that has run already */
    old = set_break(pid, walk_call);
    printf("status %x\n", resume(pid, PTRACE_CONT, 0));
    at_break(pid, walk_call, old, "again");
    printf("status %x\n", resume(pid, PTRACE_CONT, 0)); /* SIGUSR1 */
    status = resume(pid, PTRACE_SINGLESTEP, SIGUSR1);
    printf("in the handler: %d, status %x\n", pc_of(pid) == (char *)on_signal, status);
    printf("status %x\n", resume(pid, PTRACE_CONT, 0));
    return 0;
}

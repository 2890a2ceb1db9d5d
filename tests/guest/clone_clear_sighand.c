/* CLONE_CLEAR_SIGHAND: a child that begins without the handlers of its parent, what is ignored stays so. As a copy, and in the
 * memory of a parent that waits. Then the child dies of signals that its parent handles, of its own faults, too. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ull
#endif

static void handler(int signo) {
    static const char text[] = "the handler was called\n";
    if (write(1, text, sizeof text - 1)) _exit(50 + signo);
}

static int state(int signo) {
    struct sigaction sa;
    if (sigaction(signo, NULL, &sa)) return 9;
    return (sa.sa_handler == SIG_DFL ? 0 : sa.sa_handler == SIG_IGN ? 1 : 2) + (sa.sa_flags & SA_RESTART ? 4 : 0);
}

static void child(int signo) {
    if (state(SIGUSR1) || state(SIGUSR2) != 1 || state(SIGSEGV) || state(SIGTERM)) _exit(40 + state(SIGUSR1));
    if (signo == SIGSEGV) *(volatile int *)8 = 0;
    raise(signo);
    _exit(signo);
}

/* Inline: a child in its parent's memory must not return through the parent's frames. */
static inline __attribute__((always_inline)) long clone3(struct clone_args *args) {
    long ret;
    __asm__ volatile("syscall" : "=a"(ret) : "a"(SYS_clone3), "D"(args), "S"(sizeof *args) : "rcx", "r11", "memory");
    return ret;
}

static void run(uint64_t flags, const char *what, int signo) {
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    int status;
    fflush(stdout);
    long pid = clone3(&args);
    if (pid == 0) child(signo);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) exit(1);
    if (WIFSIGNALED(status))
        printf("%s: signal %d\n", what, WTERMSIG(status));
    else
        printf("%s: status %d\n", what, WEXITSTATUS(status));
}

int main(void) {
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
    int signals[] = {SIGUSR1, SIGUSR2, SIGSEGV, SIGTERM};
    sigaction(SIGUSR1, &sa, NULL);
    sigaction(SIGSEGV, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sa.sa_handler = SIG_IGN;
    sigaction(SIGUSR2, &sa, NULL);
    for (int i = 0; i < 4; i++) run(CLONE_CLEAR_SIGHAND, "copy", signals[i]);
    for (int i = 0; i < 4; i++) run(CLONE_CLEAR_SIGHAND | CLONE_VM | CLONE_VFORK, "vfork", signals[i]);

    struct clone_args both = {.flags = CLONE_CLEAR_SIGHAND | CLONE_SIGHAND | CLONE_VM, .exit_signal = SIGCHLD};
    if (clone3(&both) != -EINVAL) return 1;
    printf("parent: %d %d %d\n", state(SIGUSR1), state(SIGUSR2), state(SIGSEGV));
    return 0;
}

/* The kernel keeps no more than RLIMIT_SIGPENDING signals for a user, and of the next ones not who sent them, or why. */
#include "guest.h"
#include <sys/ptrace.h>
#include <sys/resource.h>

static volatile int done, signals;
static int last_code, last_pid;

static void *compute(void *arg) {
    volatile unsigned long n = 0;
    while (!done) n++;
    return arg;
}

static void on_signal(int signo, siginfo_t *info, void *context) {
    (void)signo, (void)context;
    last_code = info->si_code;
    last_pid = info->si_pid;
    signals++;
}

static void threads(void) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, compute, NULL);
    for (int i = 0; i < 30; i++) {
        void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(p, 4096);
        usleep(2000);
    }
    done = 1;
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}

static void tracee(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        volatile unsigned long n = 0;
        for (;;) n++;
    }
    usleep(10000);
    for (int i = 0; i < 3; i++) {
        CHECK(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0);
        CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
        CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
        CHECK(ptrace(PTRACE_DETACH, pid, 0, 0) == 0);
    }
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGKILL);
}

int main(void) {
    struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
    threads();
    tracee();
    /* one of ours that looks like a signal of nobody's is none, but this is: */
    handle(SIGILL, on_signal, 0);
    CHECK(syscall(SYS_tgkill, getpid(), getpid(), SIGILL) == 0);
    CHECK(signals == 1 && last_code == SI_USER && last_pid == 0);
    CHECK(kill(getpid(), SIGILL) == 0);
    CHECK(signals == 2 && last_code == SI_USER && last_pid == getpid());
    return finish();
}

/* Signals that faults raise, but sent by somebody while the program blocks them: pending for sigpending(), /proc, signalfd, poll() and
 * sigtimedwait(), and delivered by sigsuspend(), as any other. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int signals[] = {SIGTRAP, SIGILL, SIGFPE, SIGBUS, SIGSEGV, SIGSYS};
#define SIGNALS (sizeof signals / sizeof *signals)

static void show_status(const char *when) {
    char line[200];
    FILE *f = fopen("/proc/thread-self/status", "r");
    printf("%s:", when);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "SigPnd", 6) == 0 || strncmp(line, "ShdPnd", 6) == 0 || strncmp(line, "SigBlk", 6) == 0)
            printf(" %.6s %s", line, strtok(line + 8, "\n"));
    fclose(f);
    sigset_t set;
    sigpending(&set);
    for (size_t i = 0; i < SIGNALS; i++)
        if (sigismember(&set, signals[i])) printf(" pending %d", signals[i]);
    printf("\n");
}

static void send_one(int signo, int how) {
    if (how == 0) raise(signo);
    if (how == 1) kill(getpid(), signo);
    if (how == 2) sigqueue(getpid(), signo, (union sigval){.sival_int = 42});
}

static void take_by_fd(int fd) {
    struct signalfd_siginfo info = {0};
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int ready = poll(&p, 1, 0);
    long n = read(fd, &info, sizeof info);
    printf("poll %d, read %ld: signal %u code %d value %d\n", ready, n, info.ssi_signo, info.ssi_code, info.ssi_int);
}

static void take_by_wait(const sigset_t *set) {
    siginfo_t info = {0};
    struct timespec none = {0, 0};
    int got = sigtimedwait(set, &info, &none);
    printf("sigtimedwait %d: code %d value %d\n", got, got > 0 ? info.si_code : 0, got > 0 ? info.si_int : 0);
}

static volatile sig_atomic_t handled;
static void on_signal(int signo) { handled = signo; }

/* It comes while somebody waits for it. */
static void wait_for_child(const sigset_t *set, int fd, int how) {
    siginfo_t info = {0};
    int parent = getpid();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(30000);
        kill(parent, SIGTRAP);
        _exit(0);
    }
    if (how == 0) printf("sigwaitinfo: %d\n", sigwaitinfo(set, &info));
    if (how == 1) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        printf("poll: %d\n", poll(&p, 1, -1));
        take_by_fd(fd);
    }
    if (how == 2) {
        struct signalfd_siginfo got = {0};
        long n = read(fd, &got, sizeof got);
        printf("read: %ld, signal %u\n", n, got.ssi_signo);
    }
    while (waitpid(child, NULL, 0) < 0) {}
}

int main(void) {
    sigset_t set, none;
    sigemptyset(&set);
    sigemptyset(&none);
    for (size_t i = 0; i < SIGNALS; i++) {
        sigaddset(&set, signals[i]);
        signal(signals[i], on_signal);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK), waits = signalfd(-1, &set, 0);
    for (size_t i = 0; i < SIGNALS; i++)
        for (int how = 0; how < 3; how++) {
            send_one(signals[i], how);
            show_status("sent");
            take_by_fd(fd);
            send_one(signals[i], how);
            take_by_wait(&set);
            take_by_wait(&set);
            show_status("taken");
        }
    send_one(SIGTRAP, 0);
    errno = 0;
    int ret = sigsuspend(&none);
    printf("sigsuspend %d %d, handled %d\n", ret, errno == EINTR, handled);
    handled = 0;
    send_one(SIGILL, 1);
    ret = ppoll(NULL, 0, &(struct timespec){5, 0}, &none);
    printf("ppoll %d %d, handled %d\n", ret, errno == EINTR, handled);
    for (int how = 0; how < 3; how++) wait_for_child(&set, waits, how);
    handled = 0;
    raise(SIGBUS);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("handled %d\n", handled);
    return 0;
}

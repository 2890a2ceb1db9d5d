/* Signals that faults use, sent by somebody while the program blocks them: they are pending as any other. */
#include "guest.h"

static int handled;

static void on_signal(int signo) { handled++; }

static bool is_pending(int signo) {
    sigset_t set;
    CHECK(sigpending(&set) == 0);
    return sigismember(&set, signo);
}

static void try_signal(int signo) {
    struct timespec none = {0, 0};
    siginfo_t info;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    signal(signo, on_signal);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(signo);
    raise(signo);
    CHECK(is_pending(signo));
    CHECK(sigtimedwait(&set, &info, &none) == signo && info.si_signo == signo && info.si_pid == getpid());
    CHECK(!is_pending(signo));
    CHECK(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN); /* two were one */
    pthread_kill(pthread_self(), signo);
    CHECK(sigwaitinfo(&set, NULL) == signo);

    raise(signo);
    signal(signo, SIG_IGN);
    CHECK(!is_pending(signo));
    signal(signo, on_signal);
    handled = 0;
    raise(signo);
    raise(signo);
    pid_t child = fork();
    if (child == 0) _exit(is_pending(signo));
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("%d: %d\n", signo, handled);
}

static void *in_thread(void *arg) {
    try_signal(SIGSEGV);
    return arg;
}

int main(void) {
    const int signals[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGUSR1};
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) try_signal(signals[i]);
    pthread_t t;
    CHECK(pthread_create(&t, NULL, in_thread, NULL) == 0);
    pthread_join(t, NULL);
    return failures != 0;
}

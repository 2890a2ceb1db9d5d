/* Blocking, pending, unblocking, sigsuspend, and a handler that edits the mask it returns to. */
#include "guest.h"

static volatile int got, order[8], n;
static void on(int sig) { got++, order[n++ & 7] = sig; }
static void edit(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)si;
    sigaddset(&((ucontext_t *)uc)->uc_sigmask, SIGTERM);
}

int main(void) {
    sigset_t set, old, pend;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2);
    struct sigaction sa = {.sa_handler = on};
    sigfillset(&sa.sa_mask);
    sigaction(SIGUSR1, &sa, NULL), sigaction(SIGUSR2, &sa, NULL), sigaction(SIGTERM, &sa, NULL);

    sigprocmask(SIG_BLOCK, &set, &old);
    raise(SIGUSR2), raise(SIGUSR1), raise(SIGUSR1);
    CHECK(got == 0);
    sigpending(&pend);
    CHECK(sigismember(&pend, SIGUSR1) && sigismember(&pend, SIGUSR2) && !sigismember(&pend, SIGTERM));
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("after unblock: %d, order %d %d\n", got, order[0], order[1]);

    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    CHECK(sigsuspend(&old) == -1 && errno == EINTR);
    CHECK(got == 3);
    sigprocmask(SIG_BLOCK, NULL, &pend);
    CHECK(sigismember(&pend, SIGUSR1) == 1);
    sigprocmask(SIG_SETMASK, &old, NULL);

    handle(SIGHUP, edit, 0);
    raise(SIGHUP);
    raise(SIGTERM);
    CHECK(got == 3);
    sigprocmask(SIG_BLOCK, NULL, &pend);
    CHECK(sigismember(&pend, SIGTERM) == 1);
    sigprocmask(SIG_SETMASK, &old, NULL);
    CHECK(got == 4);

    /* A blocked synchronous fault kills whatever the handler says. */
    pid_t pid = fork();
    if (!pid) {
        signal(SIGSEGV, on);
        sigemptyset(&set), sigaddset(&set, SIGSEGV);
        sigprocmask(SIG_BLOCK, &set, NULL);
        *(volatile int *)8 = 1;
        _exit(0);
    }
    printf("blocked fault: %s\n", wait_text(pid));
    pid = fork();
    if (!pid) {
        signal(SIGSEGV, SIG_IGN);
        *(volatile int *)8 = 1;
        _exit(0);
    }
    printf("ignored fault: %s\n", wait_text(pid));
    CHECK(sigprocmask(77, &set, NULL) == -1 && errno == EINVAL);
    return finish();
}

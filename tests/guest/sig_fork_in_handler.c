/* Handlers that fork, wait, exit or leave by siglongjmp; a child inherits handlers and mask but no pending signals. */
#include "guest.h"

static volatile int handled;
static sigjmp_buf away;
static void forks(int sig) {
    (void)sig;
    pid_t pid = fork();
    if (!pid) _exit(3);
    printf("in handler: child %s\n", wait_text(pid));
    handled++;
}
static void count(int sig) { (void)sig, handled++; }
static void exits(int sig) {
    (void)sig;
    exit(9);
}
static void leaves(int sig) {
    (void)sig;
    siglongjmp(away, 1);
}
static void bye(void) { puts("atexit ran"); }

int main(void) {
    signal(SIGUSR1, forks);
    raise(SIGUSR1), raise(SIGUSR1);
    CHECK(handled == 2);

    signal(SIGUSR1, count);
    sigset_t s, pend;
    sigemptyset(&s), sigaddset(&s, SIGUSR1);
    sigprocmask(SIG_BLOCK, &s, NULL);
    raise(SIGUSR1);
    pid_t pid = fork();
    if (!pid) {
        sigpending(&pend);
        if (sigismember(&pend, SIGUSR1)) _exit(1);
        sigprocmask(SIG_BLOCK, NULL, &pend);
        if (!sigismember(&pend, SIGUSR1)) _exit(2);
        sigprocmask(SIG_UNBLOCK, &s, NULL);
        if (handled != 2) _exit(4);
        raise(SIGUSR1);
        _exit(handled == 3 ? 0 : 5);
    }
    printf("child %s\n", wait_text(pid));
    sigprocmask(SIG_UNBLOCK, &s, NULL);
    CHECK(handled == 3);

    pid = fork();
    if (!pid) {
        atexit(bye);
        signal(SIGALRM, exits);
        ualarm(1000, 0);
        for (;;) {}
    }
    printf("exit in handler: %s\n", wait_text(pid));

    signal(SIGALRM, leaves);
    for (volatile int i = 0; i < 20; i++) {
        if (sigsetjmp(away, 1) == 0) {
            ualarm(1000, 0);
            for (;;) {}
        }
    }
    puts("left 20 loops by siglongjmp");
    return finish();
}

/* Handlers by raise, kill and tgkill; ignored and default-ignored signals; what sigaction reports back. */
#include "guest.h"

static volatile sig_atomic_t hits[65];
static void count(int sig) { hits[sig]++; }

int main(void) {
    for (int sig = 1; sig < 65; sig++) {
        if (sig == SIGKILL || sig == SIGSTOP || sig == 32 || sig == 33) continue;
        CHECK(signal(sig, count) != SIG_ERR);
    }
    for (int sig = 1; sig < 65; sig++) {
        if (sig == SIGKILL || sig == SIGSTOP || sig == 32 || sig == 33) continue;
        raise(sig);
        kill(getpid(), sig);
        syscall(SYS_tgkill, getpid(), gettid(), sig);
    }
    for (int sig = 1; sig < 65; sig++)
        if (hits[sig]) printf("%d:%d ", sig, hits[sig]);
    puts("");

    struct sigaction old;
    sigaction(SIGUSR1, NULL, &old);
    CHECK(old.sa_handler == count && (old.sa_flags & SA_RESTART));
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &old);
    CHECK(old.sa_handler == SIG_IGN);
    signal(SIGCHLD, SIG_DFL), raise(SIGCHLD);
    signal(SIGURG, SIG_DFL), raise(SIGURG);
    signal(SIGWINCH, SIG_DFL), raise(SIGWINCH);
    signal(SIGCONT, SIG_DFL), raise(SIGCONT);
    CHECK(hits[SIGUSR1] == 3);

    CHECK(signal(SIGKILL, count) == SIG_ERR && errno == EINVAL);
    CHECK(signal(SIGSTOP, count) == SIG_ERR && errno == EINVAL);
    CHECK(kill(getpid(), 65) == -1 && errno == EINVAL);
    CHECK(kill(getpid(), 0) == 0);
    CHECK(kill(0x3fffffff, 0) == -1 && errno == ESRCH);
    return finish();
}

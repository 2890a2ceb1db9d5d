/* SA_RESETHAND puts the default back before the handler runs; SA_NODEFER leaves the signal unblocked inside it. */
#include "guest.h"

static volatile int blocked_inside, disposition_default;

static void look(int sig, siginfo_t *si, void *uc) {
    (void)si, (void)uc;
    sigset_t now;
    struct sigaction sa;
    sigprocmask(SIG_BLOCK, NULL, &now);
    blocked_inside = sigismember(&now, sig);
    sigaction(sig, NULL, &sa);
    disposition_default = sa.sa_handler == SIG_DFL;
}

int main(void) {
    static const struct {
        const char *name;
        int flags;
    } rows[] = {
        {"plain", 0}, {"resethand", SA_RESETHAND}, {"nodefer", SA_NODEFER}, {"both", SA_RESETHAND | SA_NODEFER}};
    for (int i = 0; i < 4; i++) {
        handle(SIGUSR1, look, rows[i].flags);
        raise(SIGUSR1);
        printf("%-10s blocked inside %d, default inside %d\n", rows[i].name, blocked_inside, disposition_default);
    }
    pid_t pid = fork();
    if (!pid) {
        handle(SIGUSR1, look, SA_RESETHAND);
        raise(SIGUSR1), raise(SIGUSR1);
        _exit(0);
    }
    printf("second one: %s\n", wait_text(pid));
    return finish();
}

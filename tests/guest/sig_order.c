/* Several pending signals unblocked at once: all frames are stacked before the first handler runs,
 * so without sa_mask the last one delivered runs first; synchronous numbers go before others. */
#include "guest.h"

static char trace[128];
static void on(int sig) { sprintf(trace + strlen(trace), "%d ", sig); }

static void round_of(int flags, bool mask_all) {
    int sigs[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGALRM, 40, 35, 64};
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    for (unsigned i = 0; i < sizeof sigs / sizeof *sigs; i++) {
        struct sigaction sa = {.sa_handler = on, .sa_flags = flags};
        if (mask_all) sigfillset(&sa.sa_mask);
        sigaction(sigs[i], &sa, NULL);
        syscall(SYS_tgkill, getpid(), gettid(), sigs[i]);
    }
    trace[0] = 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    puts(trace);
}

int main(void) {
    round_of(0, true);
    round_of(0, false);
    round_of(SA_NODEFER, false);
    round_of(SA_RESETHAND, true);
    return finish();
}

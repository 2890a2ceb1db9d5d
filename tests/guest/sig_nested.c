/* Handlers that interrupt handlers: depth, sa_mask, and the mask put back on return. */
#include "guest.h"

static volatile int depth, deepest;
static char trace[256];

static void inner(int sig) { strcat(trace, sig == SIGUSR2 ? "[2]" : "[h]"); }

static void outer(int sig) {
    (void)sig;
    strcat(trace, "(1");
    raise(SIGUSR2); /* not masked: runs now */
    raise(SIGHUP);  /* in sa_mask: runs after this handler */
    raise(SIGUSR1); /* masked itself: runs after this handler, once */
    strcat(trace, ")");
    if (strlen(trace) > 30) signal(SIGUSR1, SIG_IGN);
}

static void recurse(int sig, siginfo_t *si, void *uc) {
    (void)si, (void)uc;
    if (++depth > deepest) deepest = depth;
    if (depth < 200) raise(sig);
    depth--;
}

int main(void) {
    struct sigaction sa = {.sa_handler = outer};
    sigaddset(&sa.sa_mask, SIGHUP);
    sigaction(SIGUSR1, &sa, NULL);
    signal(SIGUSR2, inner), signal(SIGHUP, inner);
    raise(SIGUSR1);
    puts(trace);

    handle(SIGRTMIN, recurse, SA_NODEFER);
    raise(SIGRTMIN);
    printf("deepest %d, now %d\n", deepest, depth);

    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    for (int s = 1; s < 65; s++) CHECK(sigismember(&now, s) != 1);
    return finish();
}

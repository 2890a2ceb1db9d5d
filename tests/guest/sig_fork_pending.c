/* Signals that were sent to the parent never run a handler in a forked child, however close to the fork they arrive. */
#include "guest.h"
#include <sys/time.h>

static pid_t parent;
static volatile int in_child;

static void on_alarm(int sig) {
    (void)sig;
    if (getpid() != parent) in_child = 1;
}

int main(void) {
    parent = getpid();
    struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &sa, NULL);
    struct itimerval often = {{0, 50}, {0, 50}};
    setitimer(ITIMER_REAL, &often, NULL);
    int leaked = 0;
    for (int i = 0; i < 400; i++) {
        pid_t pid = fork();
        if (!pid) {
            for (volatile int k = 0; k < 1000; k++) {}
            _exit(in_child);
        }
        int st;
        while (waitpid(pid, &st, 0) < 0) {}
        leaked += st != 0;
    }
    CHECK(leaked == 0);
    return finish();
}

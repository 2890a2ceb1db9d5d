// The self-pipe trick: a handler writes what poll waits for; timers and a thread race to be first.
#include "race.h"
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
static int fd[2];
static volatile int handled;
static void handler(int s) {
    char c = (char)('0' + handled++ % 10);
    if (write(fd[1], &c, 1) != 1) handled += 1000;
}
static void *other(void *arg) {
    for (int i = 0; i < 30; i++) {
        work(6000);
        if (write(fd[1], "x", 1) != 1) break;
    }
    return NULL;
}
int main(void) {
    pthread_t t;
    sigset_t set;
    if (pipe(fd)) return 1;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&t, NULL, other, NULL);
    struct sigaction sa = {.sa_handler = handler}; /* no SA_RESTART */
    sigaction(SIGALRM, &sa, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    struct itimerval it = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &it, NULL);
    char text[256] = "";
    size_t n = 0;
    int interrupted = 0;
    while (n < 45) {
        struct pollfd p = {fd[0], POLLIN, 0};
        if (poll(&p, 1, 1000) < 0) {
            interrupted++;
            continue;
        }
        ssize_t got = read(fd[0], text + n, 60 - n);
        if (got > 0) n += (size_t)got;
    }
    memset(&it, 0, sizeof it);
    setitimer(ITIMER_REAL, &it, NULL);
    pthread_join(t, NULL);
    printf("%.45s\n%d interrupted\n", text, interrupted);
    return 0;
}

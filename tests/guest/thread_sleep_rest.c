/* A thread that sleeps wants the rest where the time was, as sleep() does; another one looks at it all the time. What that sees, and
 * when, is printed: a replay shows the same. */
#include "guest.h"

#define ROUNDS 60

static struct timespec rest;
static volatile int done;

static void nothing(int signo) {}

static void *look(void *unused) {
    uint64_t looks = 0, seen = 0;
    long last = 0;
    while (!done) {
        long now = *(volatile long *)&rest.tv_nsec;
        looks++;
        if (now != last) seen = seen * 31 + looks;
        last = now;
    }
    printf("%lx\n", (unsigned long)seen);
    return NULL;
}

int main(void) {
    pthread_t thread;
    sigset_t alarm;
    struct sigaction sa = {.sa_handler = nothing};
    sigaction(SIGALRM, &sa, NULL);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    CHECK(pthread_create(&thread, NULL, look, NULL) == 0);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        struct itimerval soon = {.it_value = {.tv_usec = 3000},
                                 .it_interval = {.tv_usec = 3000}}; /* again: the first may be early */
        rest = (struct timespec){100, 0};
        setitimer(ITIMER_REAL, &soon, NULL);
        CHECK(clock_nanosleep(CLOCK_REALTIME, 0, &rest, &rest) == EINTR);
        CHECK(rest.tv_sec == 99 || rest.tv_nsec);
    }
    done = 1;
    pthread_join(thread, NULL);
    return finish();
}

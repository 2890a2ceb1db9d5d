// Signals of a condition variable that come before anybody waits are lost; timeouts save the day.
#include "race.h"
#include <errno.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int done;
static void *body(void *arg) {
    if (arg) {
        for (int i = 0; i < 40; i++) {
            work(60000);
            pthread_cond_signal(&cond); /* no predicate, no lock */
        }
        done = 1;
        return NULL;
    }
    int woken = 0, late = 0;
    char trace[64] = "";
    for (int i = 0; i < 40 && !done; i++) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1000000;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        pthread_mutex_lock(&lock);
        int e = pthread_cond_timedwait(&cond, &lock, &until);
        pthread_mutex_unlock(&lock);
        e == ETIMEDOUT ? late++ : woken++;
        trace[i] = e == ETIMEDOUT ? '-' : '+';
        work(3000);
    }
    printf("%d woken, %d timed out: %s\n", woken, late, trace);
    return NULL;
}
int main(void) {
    race(2, body);
    return 0;
}

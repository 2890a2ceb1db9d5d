// A broadcast wakes everybody; one gets the token, the others go back. Who won is a race.
#include "race.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int tokens, left = 60, in_vain[6], won[6], n;
static char trace[64];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    if (me == 6) {
        for (int i = 0; i < 60; i++) {
            pthread_mutex_lock(&lock);
            tokens++;
            pthread_cond_broadcast(&cond);
            pthread_mutex_unlock(&lock);
            if (i % 4 == 0) sched_yield();
        }
        return NULL;
    }
    pthread_mutex_lock(&lock);
    while (left > 0) {
        if (tokens) {
            tokens--;
            if (--left == 0) pthread_cond_broadcast(&cond);
            won[me]++;
            trace[n++] = (char)('0' + me);
            continue;
        }
        pthread_cond_wait(&cond, &lock);
        if (!tokens && left) in_vain[me]++;
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}
int main(void) {
    race(7, body);
    puts(trace);
    for (int i = 0; i < 6; i++) printf("thread %d: %d won, woken in vain %d times\n", i, won[i], in_vain[i]);
    return 0;
}

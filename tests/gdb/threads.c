/* Threads with names that take turns, work alone, and end at different times. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define THREADS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
volatile int turn, rounds, mine[THREADS + 1];
__thread int own;

static void work(int me) {
    for (volatile int i = 0; i < 500; i++) own += me;
    mine[me] = own;
}

static void take_turn(int me) {
    pthread_mutex_lock(&lock);
    while (turn % THREADS != me - 1) pthread_cond_wait(&changed, &lock);
    turn++;
    rounds += me;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *run(void *arg) {
    int me = (int)(long)arg;
    char name[16];
    snprintf(name, sizeof name, "worker-%d", me);
    prctl(PR_SET_NAME, name);
    for (int i = 0; i < 4; i++) {
        work(me);
        take_turn(me);
    }
    return NULL;
}

int main(void) {
    pthread_t t[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, run, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    printf("%d %d %d %d %d\n", turn, rounds, mine[1], mine[2], mine[3]);
    return 0;
}

// A semaphore lets two of five in; the order is a race.
#include "race.h"
#include <semaphore.h>
static sem_t sem;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char trace[256];
static int n;
static volatile int inside, most;
static void note(int c) {
    pthread_mutex_lock(&lock);
    trace[n++] = (char)c;
    pthread_mutex_unlock(&lock);
}
static void *body(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < 12; i++) {
        sem_wait(&sem);
        note('A' + me);
        int k = ++inside;
        if (k > most) most = k;
        work(2000);
        inside--;
        note('a' + me);
        sem_post(&sem);
    }
    return NULL;
}
int main(void) {
    sem_init(&sem, 0, 2);
    race(5, body);
    printf("%s\nmost %d, left %d\n", trace, most, inside);
    return 0;
}

/* Process-shared mutex, condition variable, barrier and semaphore. */
#include "shared.h"

struct all {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_barrier_t barrier;
    sem_t sem;
    int turn, order[64], n;
};
static struct all *a;

static void work(int self) {
    pthread_barrier_wait(&a->barrier);
    for (int round = 0; round < 5; round++) {
        pthread_mutex_lock(&a->mutex);
        while (a->turn % 3 != self) pthread_cond_wait(&a->cond, &a->mutex);
        a->turn++;
        pthread_cond_broadcast(&a->cond);
        pthread_mutex_unlock(&a->mutex);
        sem_wait(&a->sem);
        if (a->n < 64) a->order[a->n++] = self;
        sem_post(&a->sem);
    }
}

int main(void) {
    a = share(sizeof *a);
    pthread_mutexattr_t m;
    pthread_condattr_t c;
    pthread_barrierattr_t b;
    pthread_mutexattr_init(&m);
    pthread_condattr_init(&c);
    pthread_barrierattr_init(&b);
    pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_setpshared(&b, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&a->mutex, &m);
    pthread_cond_init(&a->cond, &c);
    pthread_barrier_init(&a->barrier, &b, 3);
    sem_init(&a->sem, 1, 1);
    in_children(3, work);
    printf("turn %d, order", a->turn);
    for (int i = 0; i < a->n; i++) printf(" %d", a->order[i]);
    printf("\n");
    return a->turn != 15;
}

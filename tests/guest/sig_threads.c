/* Signals and threads: directed ones run on their thread; process-directed ones go where they are not blocked. */
#include "guest.h"
#include <semaphore.h>

enum { N = 8 };
static __thread volatile int mine;
static volatile int total, stop, wrong;
static sem_t ready;

static void on(int sig) { (void)sig, mine++, __atomic_add_fetch(&total, 1, __ATOMIC_SEQ_CST); }
static void on_process(int sig) {
    (void)sig;
    if (!mine) wrong++;
    __atomic_add_fetch(&total, 1, __ATOMIC_SEQ_CST);
}

static void *worker(void *arg) {
    (void)arg;
    sem_post(&ready);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {}
    return (void *)(long)mine;
}
static void *only_receiver(void *arg) {
    (void)arg;
    mine = 1;
    sigset_t s;
    sigemptyset(&s), sigaddset(&s, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &s, NULL);
    sem_post(&ready);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {}
    return NULL;
}

int main(void) {
    pthread_t th[N];
    sem_init(&ready, 0, 0);
    signal(SIGUSR1, on);
    for (int i = 0; i < N; i++) pthread_create(&th[i], NULL, worker, NULL);
    for (int i = 0; i < N; i++) sem_wait(&ready);
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < N; i++) {
            int before = __atomic_load_n(&total, __ATOMIC_SEQ_CST);
            CHECK(pthread_kill(th[i], SIGUSR1) == 0);
            while (__atomic_load_n(&total, __ATOMIC_SEQ_CST) == before) sched_yield();
        }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < N; i++) {
        void *r;
        pthread_join(th[i], &r);
        printf("%ld ", (long)r);
    }
    printf("= %d\n", total);

    sigset_t s;
    sigemptyset(&s), sigaddset(&s, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &s, NULL);
    signal(SIGUSR2, on_process);
    stop = total = 0;
    for (int i = 0; i < 3; i++) pthread_create(&th[i], NULL, worker, NULL);
    pthread_create(&th[3], NULL, only_receiver, NULL);
    for (int i = 0; i < 4; i++) sem_wait(&ready);
    for (int i = 0; i < 50; i++) {
        kill(getpid(), SIGUSR2);
        while (__atomic_load_n(&total, __ATOMIC_SEQ_CST) == i) sched_yield();
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++) pthread_join(th[i], NULL);
    printf("process-directed: %d, on the wrong thread %d\n", total, wrong);
    return finish();
}

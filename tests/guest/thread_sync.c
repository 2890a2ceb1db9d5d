/* Mutexes of all kinds, condition variables, rwlocks, barriers, semaphores, spin locks, once: counts come out exact. */
#include "guest.h"
#include <semaphore.h>

enum { N = 6, ROUNDS = 3000 };
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, rec, err, pi;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t bar;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem;
static long counts[8], onces, serials, torn, turn;
static volatile long pair[2];

static void just_once(void) { onces++; }
static void *work(void *arg) {
    long id = (long)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&plain), counts[0]++, pthread_mutex_unlock(&plain);
        pthread_mutex_lock(&rec), pthread_mutex_lock(&rec), counts[1]++, pthread_mutex_unlock(&rec),
            pthread_mutex_unlock(&rec);
        pthread_mutex_lock(&pi), counts[2]++, pthread_mutex_unlock(&pi);
        pthread_spin_lock(&spin), counts[3]++, pthread_spin_unlock(&spin);
        if (i % 8 == 0)
            pthread_rwlock_wrlock(&rw), pair[0]++, pair[1]++, pthread_rwlock_unlock(&rw);
        else
            pthread_rwlock_rdlock(&rw), torn += pair[0] != pair[1], pthread_rwlock_unlock(&rw);
        sem_wait(&sem), __atomic_add_fetch(&counts[4], 1, __ATOMIC_RELAXED), sem_post(&sem);
        pthread_once(&once, just_once);
    }
    for (int i = 0; i < 50; i++)
        if (pthread_barrier_wait(&bar) == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 100; i++) { /* round robin by condition variable */
        pthread_mutex_lock(&plain);
        while (turn % N != id) pthread_cond_wait(&cond, &plain);
        counts[5] = counts[5] * 7 + id, turn++;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&plain);
    }
    return NULL;
}

int main(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE), pthread_mutex_init(&rec, &a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK), pthread_mutex_init(&err, &a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_NORMAL), pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    CHECK(pthread_mutex_init(&pi, &a) == 0);
    pthread_barrier_init(&bar, NULL, N), pthread_spin_init(&spin, 0), sem_init(&sem, 0, 2);
    pthread_t t[N];
    for (long i = 0; i < N; i++) pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < N; i++) pthread_join(t[i], NULL);
    printf("%ld %ld %ld %ld %ld, once %ld, serial %ld, torn %ld, pair %ld\n", counts[0], counts[1], counts[2],
           counts[3], counts[4], onces, serials, torn, pair[0]);
    printf("round robin %lx\n", counts[5]);

    CHECK(pthread_mutex_lock(&err) == 0 && pthread_mutex_lock(&err) == EDEADLK && pthread_mutex_unlock(&err) == 0);
    CHECK(pthread_mutex_unlock(&err) == EPERM);
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += 20000000;
    if (ts.tv_nsec >= 1000000000) ts.tv_sec++, ts.tv_nsec -= 1000000000;
    pthread_mutex_lock(&plain);
    CHECK(pthread_cond_timedwait(&cond, &plain, &ts) == ETIMEDOUT);
    pthread_mutex_unlock(&plain);
    return finish();
}

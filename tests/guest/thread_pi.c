/* Mutexes with priority inheritance: contention, time-outs, robust ones whose owner is gone, in one process and between two. */
#include "guest.h"

static pthread_mutex_t lock;
static volatile unsigned shared_count, spin;
static unsigned lucky;

static void init(pthread_mutex_t *m, bool robust, bool shared) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    if (robust) pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    if (shared) pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    CHECK(pthread_mutex_init(m, &a) == 0);
}

static void *contend(void *arg) {
    for (int i = 0; i < 2000; i++) {
        if (pthread_mutex_trylock(&lock) != 0)
            pthread_mutex_lock(&lock);
        else
            lucky++;
        unsigned seen = shared_count;
        for (int k = 0; k < 50; k++) spin += k;
        shared_count = seen + 1;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static volatile bool held, let_go;

static void *hold(void *arg) {
    pthread_mutex_lock(&lock);
    held = true;
    while (!let_go) sleep_ms(1);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static volatile bool has_robust;

static void *die_with(void *arg) {
    pthread_mutex_lock(arg);
    has_robust = true;
    sleep_ms(30);
    return NULL;
}

static void time_out(void) {
    pthread_t t;
    pthread_create(&t, NULL, hold, NULL);
    while (!held) sleep_ms(1);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 5000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    printf("busy: %s\n", strerror(pthread_mutex_trylock(&lock)));
    printf("timed: %s\n", strerror(pthread_mutex_timedlock(&lock, &until)));
    let_go = true;
    CHECK(pthread_mutex_lock(&lock) == 0);
    CHECK(pthread_mutex_unlock(&lock) == 0);
    pthread_join(t, NULL);
}

static void owner_gone(void) {
    pthread_mutex_t robust;
    pthread_t t;
    init(&robust, true, false);
    pthread_create(&t, NULL, die_with, &robust);
    while (!has_robust) sleep_ms(1);
    int err = pthread_mutex_lock(&robust);
    printf("owner gone: %s\n", strerror(err));
    CHECK(pthread_mutex_consistent(&robust) == 0 && pthread_mutex_unlock(&robust) == 0);
    pthread_join(t, NULL);
}

static void between_processes(void) {
    struct {
        pthread_mutex_t m;
        unsigned n;
    } *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    init(&s->m, false, true);
    pid_t child = fork();
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&s->m);
        unsigned seen = s->n;
        for (int k = 0; k < 50; k++) spin += k;
        s->n = seen + 1;
        pthread_mutex_unlock(&s->m);
    }
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    printf("two processes: %u\n", s->n);
}

int main(void) {
    pthread_t t[3];
    init(&lock, false, false);
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, contend, NULL);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    printf("%u\n", shared_count);
    fprintf(stderr, "free at first sight: %u\n", lucky);
    time_out();
    owner_gone();
    between_processes();
    return finish();
}

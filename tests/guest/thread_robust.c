/* Robust mutexes: the next locker learns that the owner died, whether a thread ended or a process was killed. */
#include "guest.h"

static pthread_mutex_t *m;
static void *takes(void *arg) {
    pthread_mutex_lock(m);
    return arg;
}
static void fresh(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(m, &a);
}
static void *waits(void *arg) {
    *(int *)arg = pthread_mutex_lock(m);
    return NULL;
}

int main(void) {
    m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_t t, w;
    fresh();
    for (int i = 0; i < 20; i++) {
        pthread_create(&t, NULL, takes, NULL), pthread_join(t, NULL);
        CHECK(pthread_mutex_lock(m) == EOWNERDEAD);
        CHECK(pthread_mutex_consistent(m) == 0 && pthread_mutex_unlock(m) == 0);
    }
    pthread_create(&t, NULL, takes, NULL), pthread_join(t, NULL);
    CHECK(pthread_mutex_lock(m) == EOWNERDEAD);
    pthread_mutex_unlock(m); /* not made consistent */
    CHECK(pthread_mutex_lock(m) == ENOTRECOVERABLE);

    for (int how = 0; how < 3; how++) {
        fresh();
        int up[2];
        CHECK(pipe(up) == 0);
        pid_t pid = fork();
        if (!pid) {
            pthread_mutex_lock(m);
            (void)!write(up[1], "x", 1);
            if (how == 0) _exit(0);
            if (how == 1) sleep_ms(30), abort();
            for (;;) pause();
        }
        char c;
        CHECK(read(up[0], &c, 1) == 1);
        int got = -1;
        pthread_create(&w, NULL, waits, &got);
        if (how == 2) sleep_ms(30), kill(pid, SIGKILL);
        pthread_join(w, NULL);
        printf("way %d: lock says owner dead %d, %s\n", how, got == EOWNERDEAD, wait_text(pid));
        close(up[0]), close(up[1]);
    }
    return finish();
}

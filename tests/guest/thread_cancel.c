/* Cancellation: deferred in blocking calls and at test points, asynchronous in a compute loop, disabled, cleanup order. */
#include "guest.h"
#include <semaphore.h>

static char trace[256];
static sem_t ready;
static int fds[2];
static volatile long spins;
static volatile int sent; /* pthread_cancel has been called */
static void note(void *s) { strcat(trace, s); }

static void *in_read(void *arg) {
    char c;
    pthread_cleanup_push(note, "a");
    pthread_cleanup_push(note, "b");
    sem_post(&ready);
    (void)!read(fds[0], &c, 1);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return arg;
}
static void *in_loop(void *arg) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_push(note, "c");
    sem_post(&ready);
    for (;;) spins++;
    pthread_cleanup_pop(0);
    return arg;
}
static void *disabled(void *arg) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sem_post(&ready);
    while (!sent) sleep_ms(1); /* it is cancelled while that is disabled */
    strcat(trace, "d");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    strcat(trace, "FAIL");
    return arg;
}
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cv = PTHREAD_COND_INITIALIZER;
static void unlock(void *x) { pthread_mutex_unlock(x), strcat(trace, "e"); }
static void *in_cond(void *arg) {
    pthread_mutex_lock(&m);
    pthread_cleanup_push(unlock, &m);
    sem_post(&ready);
    for (;;) pthread_cond_wait(&cv, &m);
    pthread_cleanup_pop(0);
    return arg;
}
static void *in_sleep(void *arg) {
    sem_post(&ready);
    sleep(100);
    return arg;
}
static void *in_pause(void *arg) {
    sem_post(&ready);
    for (;;) pause();
    return arg;
}
static void *exits_early(void *arg) {
    pthread_cleanup_push(note, "f");
    sem_post(&ready);
    pthread_exit((void *)7);
    pthread_cleanup_pop(0);
    return arg;
}

static void run(const char *name, void *(*f)(void *), int wait_ms) {
    pthread_t t;
    void *r;
    trace[0] = 0;
    sent = 0;
    pthread_create(&t, NULL, f, NULL);
    sem_wait(&ready);
    sleep_ms(wait_ms);
    pthread_cancel(t);
    sent = 1;
    pthread_join(t, &r);
    printf("%s: %s, trace '%s'\n", name,
           r == PTHREAD_CANCELED ? "cancelled"
           : (long)r == 7        ? "returned 7"
                                 : "?",
           trace);
}

int main(void) {
    CHECK(pipe(fds) == 0);
    sem_init(&ready, 0, 0);
    run("read", in_read, 20), run("read at once", in_read, 0), run("loop", in_loop, 10),
        run("loop at once", in_loop, 0);
    run("disabled", disabled, 5), run("cond", in_cond, 10), run("sleep", in_sleep, 10), run("pause", in_pause, 0);
    run("exit", exits_early, 10);
    int n = 0;
    for (int i = 0; i < 200; i++) {
        pthread_t t;
        void *r;
        pthread_create(&t, NULL, i & 1 ? in_loop : in_read, NULL);
        pthread_cancel(t); /* perhaps before it started */
        pthread_join(t, &r);
        n += r == PTHREAD_CANCELED;
        while (sem_trywait(&ready) == 0) {}
        trace[0] = 0;
    }
    printf("cancelled %d of 200\n", n);
    return finish();
}

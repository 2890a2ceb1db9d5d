/* POSIX timers: signal with a value, thread-directed signal, callback thread, gettime, overrun. */
#include "guest.h"
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static volatile int hits, value, code, threaded;
static volatile pid_t where;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)uc;
    value = si->si_value.sival_int, code = si->si_code, where = gettid(), hits++;
}
static void in_thread(union sigval v) { __atomic_add_fetch(&threaded, v.sival_int, __ATOMIC_SEQ_CST); }
static void *spinner(void *stop) {
    while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {}
    return NULL;
}

int main(void) {
    handle(SIGRTMIN + 3, on, 0);
    timer_t t;
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3, .sigev_value = {.sival_int = 77}};
    struct itimerspec its = {{0, 2000000}, {0, 2000000}}, off = {{0, 0}, {0, 0}};
    CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
    timer_settime(t, 0, &its, NULL);
    while (hits < 10) {}
    timer_settime(t, 0, &off, NULL);
    printf("value %d, code SI_TIMER %d\n", value, code == SI_TIMER);
    timer_delete(t);

    int stop = 0;
    pthread_t th;
    pthread_create(&th, NULL, spinner, &stop);
    ev.sigev_notify = SIGEV_THREAD_ID, ev.sigev_notify_thread_id = gettid();
    CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
    hits = 0;
    timer_settime(t, 0, &its, NULL);
    while (hits < 5) CHECK(hits == 0 || where == gettid());
    timer_delete(t);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(th, NULL);

    struct sigevent tv = {
        .sigev_notify = SIGEV_THREAD, .sigev_notify_function = in_thread, .sigev_value = {.sival_int = 1}};
    CHECK(timer_create(CLOCK_MONOTONIC, &tv, &t) == 0);
    timer_settime(t, 0, &its, NULL);
    while (__atomic_load_n(&threaded, __ATOMIC_SEQ_CST) < 3) sleep_ms(1);
    timer_delete(t);
    puts("callback thread ran");

    /* blocked for many periods: one signal, the rest counted as overrun */
    sigset_t s;
    sigemptyset(&s), sigaddset(&s, SIGRTMIN + 3);
    ev.sigev_notify = SIGEV_SIGNAL;
    timer_create(CLOCK_MONOTONIC, &ev, &t);
    sigprocmask(SIG_BLOCK, &s, NULL);
    timer_settime(t, 0, &its, NULL);
    sleep_ms(60);
    siginfo_t si;
    CHECK(sigwaitinfo(&s, &si) == SIGRTMIN + 3 && si.si_overrun >= 10);
    timer_settime(t, 0, &off, NULL);
    CHECK(timer_gettime(t, &its) == 0 && its.it_value.tv_nsec == 0);
    timer_delete(t);
    CHECK(timer_gettime((timer_t)0x7777, &its) == -1 && errno == EINVAL);
    return finish();
}

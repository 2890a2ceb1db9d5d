/* sigwait, sigwaitinfo, sigtimedwait: taken from the queue without a handler; timeouts; another thread's wake-up. */
#include "guest.h"

static void never(int sig) { printf("FAIL: handler ran for %d\n", sig); }
static void *waiter(void *out) {
    sigset_t s;
    int sig = 0;
    sigemptyset(&s), sigaddset(&s, SIGUSR2);
    sigwait(&s, &sig);
    *(int *)out = sig;
    return NULL;
}

int main(void) {
    sigset_t s;
    siginfo_t si;
    sigemptyset(&s), sigaddset(&s, SIGUSR1), sigaddset(&s, SIGUSR2), sigaddset(&s, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &s, NULL);
    signal(SIGUSR1, never), signal(SIGUSR2, never), signal(SIGRTMIN + 1, never);

    struct timespec zero = {0, 0}, short_while = {0, 30000000};
    CHECK(sigtimedwait(&s, &si, &zero) == -1 && errno == EAGAIN);
    long t = now_ms();
    CHECK(sigtimedwait(&s, &si, &short_while) == -1 && errno == EAGAIN);
    CHECK(now_ms() - t >= 29);

    sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 9});
    kill(getpid(), SIGUSR1);
    for (int i = 0; i < 2; i++) {
        int sig = sigwaitinfo(&s, &si);
        printf("took %d, code %d, value %d\n", sig, si.si_code, sig > 31 ? si.si_value.sival_int : 0);
    }
    int taken = 0;
    pthread_t th;
    pthread_create(&th, NULL, waiter, &taken);
    sleep_ms(20);
    kill(getpid(), SIGUSR2); /* blocked here, waited for there */
    pthread_join(th, NULL);
    printf("thread took %d\n", taken);
    return finish();
}

/* Clocks: monotonic through the vDSO and by system call, coarse ones, resolution, cpu clocks, getcpu, rdtsc forward. */
#include "guest.h"
#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/random.h>

static int64_t ns(int clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}
static int64_t ns_sys(int clock) {
    struct timespec t;
    syscall(SYS_clock_gettime, clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}
static void *check_monotonic(void *arg) {
    long bad = 0;
    int64_t last = 0;
    (void)arg;
    for (int i = 0; i < 100000; i++) {
        int64_t t = ns(CLOCK_MONOTONIC);
        bad += t < last;
        last = t;
    }
    return (void *)bad;
}

static volatile int handler_bad;
static void on_tick(int sig, siginfo_t *si, void *uc) {
    static int64_t last;
    (void)sig, (void)si, (void)uc;
    int64_t t = ns(CLOCK_MONOTONIC);
    handler_bad += t < last, last = t;
}

int main(void) {
    printf("backwards: %ld\n", (long)check_monotonic(NULL));
    for (int i = 0; i < 1000; i++) {
        int64_t a = ns(CLOCK_MONOTONIC), b = ns_sys(CLOCK_MONOTONIC), c = ns(CLOCK_MONOTONIC);
        if (a > b || b > c) {
            puts("FAIL: vDSO and system call disagree");
            break;
        }
    }
    struct timeval tv;
    gettimeofday(&tv, NULL);
    CHECK(llabs(tv.tv_sec - ns(CLOCK_REALTIME) / 1000000000) <= 1 && labs(time(NULL) - tv.tv_sec) <= 1);
    CHECK(ns(CLOCK_MONOTONIC_COARSE) <= ns(CLOCK_MONOTONIC) && ns(CLOCK_BOOTTIME) > 0 && ns(CLOCK_TAI) > 0 &&
          ns(CLOCK_MONOTONIC_RAW) > 0);
    struct timespec res;
    CHECK(clock_getres(CLOCK_MONOTONIC, &res) == 0 && res.tv_nsec == 1);
    CHECK(clock_gettime(12345, &res) == -1 && errno == EINVAL);
    int64_t cpu = ns(CLOCK_PROCESS_CPUTIME_ID), mine = ns(CLOCK_THREAD_CPUTIME_ID);
    for (volatile long i = 0; i < 20000000; i++) {}
    CHECK(ns(CLOCK_PROCESS_CPUTIME_ID) > cpu && ns(CLOCK_THREAD_CPUTIME_ID) > mine);
    int64_t t = ns(CLOCK_MONOTONIC);
    sleep_ms(30);
    CHECK(ns(CLOCK_MONOTONIC) - t >= 30000000);
    uint64_t t1 = __builtin_ia32_rdtsc(), t2 = __builtin_ia32_rdtsc();
    unsigned aux;
    CHECK(t2 > t1 && __builtin_ia32_rdtscp(&aux) > t2);
    pthread_t th[3];
    void *r;
    long bad = 0;
    for (int i = 0; i < 3; i++) pthread_create(&th[i], NULL, check_monotonic, NULL);
    for (int i = 0; i < 3; i++) pthread_join(th[i], &r), bad += (long)r;
    printf("in threads: %ld\n", bad);
    uint64_t a = 0, b = 0;
    CHECK(getrandom(&a, 8, 0) == 8 && getrandom(&b, 8, GRND_NONBLOCK) == 8 && a != b);
    uint8_t bytes[5000] = {0};
    CHECK(getrandom(bytes, 5000, 0) > 0 && getentropy(bytes, 256) == 0 && getentropy(bytes, 257) == -1);
    unsigned char *at = (void *)getauxval(AT_RANDOM);
    int nonzero = 0;
    for (int i = 0; i < 16; i++) nonzero += at[i] != 0;
    CHECK(nonzero > 8);
    handle(SIGALRM, on_tick, SA_RESTART); /* signals in the middle of vDSO calls do no harm */
    struct itimerval it = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &it, NULL);
    bad = (long)check_monotonic(NULL);
    setitimer(ITIMER_REAL, &off, NULL);
    printf("under signals: %ld, in handlers %d\n", bad, handler_bad);
    return finish();
}

/* Interval timers (real, virtual, profiling) and alarm interrupt loops that make no system call. */
#include "guest.h"

static volatile int ticks;
static void tick(int sig) { (void)sig, ticks++; }

static uint64_t spin_until(int n) {
    uint64_t x = 88172645463325252ull;
    while (ticks < n) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x;
}

int main(void) {
    static const struct {
        const char *name;
        int which, sig;
    } rows[] = {
        {"real", ITIMER_REAL, SIGALRM}, {"virtual", ITIMER_VIRTUAL, SIGVTALRM}, {"profiling", ITIMER_PROF, SIGPROF}};
    for (int i = 0; i < 3; i++) {
        signal(rows[i].sig, tick);
        ticks = 0;
        struct itimerval t = {{0, 3000}, {0, 3000}}, off = {{0, 0}, {0, 0}}, old;
        setitimer(rows[i].which, &t, NULL);
        CHECK(spin_until(20) != 0);
        setitimer(rows[i].which, &off, &old);
        CHECK(old.it_interval.tv_usec == 3000 || old.it_interval.tv_usec == 4000);
        printf("%s: reached %d\n", rows[i].name, ticks >= 20 ? 20 : ticks);
    }

    /* a result computed under a storm of signals equals one computed in peace */
    uint64_t calm = 1, storm = 1;
    for (long i = 0; i < 30000000; i++) calm = calm * 6364136223846793005ull + i;
    struct itimerval fast = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &fast, NULL);
    for (long i = 0; i < 30000000; i++) storm = storm * 6364136223846793005ull + i;
    setitimer(ITIMER_REAL, &off, NULL);
    CHECK(calm == storm);

    ticks = 0;
    alarm(1);
    CHECK(alarm(1) == 1);
    spin_until(1);
    CHECK(alarm(0) == 0);
    puts("alarm came");
    return finish();
}

/* Locks with priority inheritance: the kernel looks at a timeout before it looks at the lock, whoever has it. Programs that
 * would wait for themselves learn so that their time is not one. */
#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint32_t word;

static int lock(int op, const struct timespec *ts) { return syscall(SYS_futex, &word, op, 0, ts, 0, 0) ? errno : 0; }

static void try_all(const char *who) {
    struct timespec good = {1, 0}, long_ns = {1, 1000000000}, negative = {-1, 0}, negative_ns = {1, -1};
    const struct timespec *times[] = {0, &good, &long_ns, &negative, &negative_ns, (void *)8};
    int ops[] = {FUTEX_LOCK_PI_PRIVATE, FUTEX_LOCK_PI2_PRIVATE, FUTEX_TRYLOCK_PI_PRIVATE,
                 FUTEX_LOCK_PI_PRIVATE | FUTEX_CLOCK_REALTIME};
    uint32_t before = word;
    for (unsigned o = 0; o < sizeof ops / sizeof ops[0]; o++) {
        printf("%s, operation %#x:", who, ops[o]);
        for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++) {
            word = before;
            printf(" %d", lock(ops[o], times[i]));
        }
        printf("\n");
    }
    word = before;
}

int main(void) {
    try_all("free");
    word = getpid();
    try_all("own");
    return 0;
}

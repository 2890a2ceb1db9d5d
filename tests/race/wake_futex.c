// Raw futexes: waiters come too late (EAGAIN), time out or are woken.
#include "race.h"
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
static volatile uint32_t word;
static int how[3][3]; /* woken, too late, timed out */
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    if (me == 3) {
        int woken = 0;
        for (int i = 0; i < 60; i++) {
            work(3000);
            word++;
            woken += (int)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1 + i % 3, NULL, NULL, 0);
        }
        printf("woke %d\n", woken);
        return NULL;
    }
    for (int i = 0; i < 30; i++) {
        uint32_t v = word;
        work(200);
        struct timespec ts = {0, 500000};
        long r = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, v, &ts, NULL, 0);
        how[me][r == 0 ? 0 : errno == EAGAIN ? 1 : 2]++;
    }
    return NULL;
}
int main(void) {
    race(4, body);
    for (int i = 0; i < 3; i++)
        printf("waiter %d: %d woken, %d too late, %d timed out\n", i, how[i][0], how[i][1], how[i][2]);
    return 0;
}

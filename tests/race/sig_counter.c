// Main and a signal handler count in the same variable.
#include "race.h"
#include <signal.h>
#include <sys/time.h>
static volatile long count, by_handler;
static void handler(int s) {
    for (int i = 0; i < 10; i++) count++;
    by_handler += 10;
}
int main(void) {
    struct itimerval it = {{0, 700}, {0, 700}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &it, NULL);
    long by_main = 0;
    while (by_handler < 300 && by_main < 50000000) {
        long v = count;
        __asm__ volatile("" ::: "memory");
        count = v + 1;
        by_main++;
    }
    memset(&it, 0, sizeof it);
    setitimer(ITIMER_REAL, &it, NULL);
    printf("main %ld, handler %ld, count %ld, lost %ld\n", by_main, by_handler, count, by_main + by_handler - count);
    return 0;
}

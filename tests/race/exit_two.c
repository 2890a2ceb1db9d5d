// Several threads call _exit with different codes: the first wins.
#include "race.h"
static volatile int started;
static void *body(void *arg) {
    started++;
    work(race_random % 200000);
    printf("thread %d ends it, %d started\n", (int)(intptr_t)arg, started);
    fflush(stdout);
    _exit(10 + (int)(intptr_t)arg);
}
int main(void) {
    race(5, body);
    return 0;
}

// Threads print to one stdout; lines stay whole, their order is a race.
#include "race.h"
static void *body(void *arg) {
    for (int i = 0; i < 12; i++) {
        printf("thread %d line %d\n", (int)(intptr_t)arg, i);
        if (i % 3 == 0) work(300000);
        if (i % 4 == 1) sched_yield();
    }
    return NULL;
}
int main(void) {
    race(4, body);
    return 0;
}

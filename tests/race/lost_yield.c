// Lost updates made likely: the thread yields between its load and its store.
#include "race.h"
static volatile int count;
static volatile int trace[300];
static void *body(void *arg) {
    for (int i = 0; i < 100; i++) {
        int old = count;
        if (race_random >> 30) sched_yield();
        window();
        trace[old % 300] = (int)(intptr_t)arg + 1;
        count = old + 1;
    }
    return NULL;
}
int main(void) {
    race(3, body);
    printf("count %d\n", count);
    for (int i = 0; i < 300; i++) putchar(trace[i] ? '0' + trace[i] : '.');
    putchar('\n');
    return 0;
}

// Threads append to one trace; the index is not atomic, so entries are overwritten and holes are left.
#include "race.h"
enum { EACH = 3000 };
static volatile uint16_t trace[4 * EACH + 4];
static volatile int next;
static void *body(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < EACH; i++) {
        int at = next;
        trace[at] = (uint16_t)(me << 12 | i);
        next = at + 1;
        if (i % 97 == me) sched_yield();
    }
    return NULL;
}
int main(void) {
    race(4, body);
    uint64_t h = 0;
    int by[4] = {0}, switches = 0;
    for (int i = 0; i < next; i++) {
        h = mix(h, trace[i]);
        by[trace[i] >> 12]++;
        if (i && trace[i] >> 12 != trace[i - 1] >> 12) switches++;
    }
    printf("%d entries, %d %d %d %d, %d switches, %016lx\n", next, by[0], by[1], by[2], by[3], switches, h);
    return 0;
}

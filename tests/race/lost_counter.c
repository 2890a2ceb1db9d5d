// Lost updates: four threads count without a lock.
#include "race.h"
static volatile long count;
static volatile uint64_t seen[4];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    uint64_t h = 0;
    for (int i = 0; i < 300000; i++) {
        long v = count;
        window();
        count = v + 1;
        if (i % 64 == 0) h = mix(h, (uint64_t)count);
    }
    seen[me] = h;
    return NULL;
}
int main(void) {
    race(4, body);
    printf("count %ld of 1200000\n", count);
    for (int i = 0; i < 4; i++) printf("thread %d saw %016lx\n", i, seen[i]);
    return (int)(count % 7);
}

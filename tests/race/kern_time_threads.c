// Threads compare clocks: who read the later time, and what a sleep really took.
#include "race.h"
static volatile uint64_t stamp[4];
static uint64_t digest[4];
static int ahead[4];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 200; i++) {
        uint64_t t = now_ns();
        stamp[me] = t;
        for (int k = 0; k < 4; k++)
            if (stamp[k] > t) ahead[me]++;
        digest[me] = mix(digest[me], t);
        if (i % 50 == 0) sleep_us(300);
    }
    return NULL;
}
int main(void) {
    uint64_t t = now_ns();
    race(4, body);
    for (int i = 0; i < 4; i++) printf("thread %d: %d ahead, %016lx\n", i, ahead[i], digest[i]);
    printf("took %lu ns\n", now_ns() - t);
    return 0;
}

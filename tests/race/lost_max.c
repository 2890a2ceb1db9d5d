// The largest value so far: tested, then set.
#include "race.h"
static volatile uint32_t largest;
static volatile int steps[4], fell[4];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    uint32_t before = 0;
    for (uint32_t i = 0; i < 300000; i++) {
        uint32_t v = i * 4 + (uint32_t)me;
        if (v > largest) {
            window();
            largest = v;
            steps[me]++;
        }
        uint32_t now = largest;
        if (now < before) fell[me]++;
        before = now;
    }
    return NULL;
}
int main(void) {
    race(4, body);
    printf("largest %u\n", largest);
    for (int i = 0; i < 4; i++) printf("thread %d set it %d times, saw it fall %d times\n", i, steps[i], fell[i]);
    return 0;
}

// Lost bits: each thread sets and clears a bit of its own in one shared word.
#include "race.h"
static volatile uint32_t word;
static volatile int lost[4];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    uint32_t bit = 1u << me;
    for (int i = 0; i < 200000; i++) {
        uint32_t v = word;
        window();
        word = v | bit;
        if (!(word & bit)) lost[me]++;
        v = word;
        window();
        word = v & ~bit;
        if (word & bit) lost[me]++;
    }
    return NULL;
}
int main(void) {
    race(4, body);
    printf("left over %x; lost %d %d %d %d\n", word, lost[0], lost[1], lost[2], lost[3]);
    return 0;
}

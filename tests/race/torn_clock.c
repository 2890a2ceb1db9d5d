// Seconds and fractions are updated one after the other: a reader sees time run backwards.
#include "race.h"
static volatile uint32_t hi, lo;
static volatile int done;
static void *body(void *arg) {
    if (arg) {
        for (uint32_t i = 0; i < 1000000; i++) {
            uint64_t v = (uint64_t)i * 37;
            hi = (uint32_t)(v / 1000);
            window();
            lo = (uint32_t)(v % 1000);
        }
        done = 1;
        return NULL;
    }
    uint64_t last = 0, back = 0, n = 0, h = 0;
    while (!done && n < 20000000) {
        uint64_t v = (uint64_t)hi * 1000 + lo;
        n++;
        window();
        if (v < last) {
            back++;
            h = mix(h, last - v);
        }
        last = v;
    }
    printf("%lu steps back in %lu looks, %016lx\n", back, n, h);
    return NULL;
}
int main(void) {
    race(2, body);
    return 0;
}

// 128-bit values are loaded and stored in halves.
#include "race.h"
static volatile unsigned __int128 shared;
static volatile int done;
static void *body(void *arg) {
    if (arg) {
        for (uint64_t i = 0; i < 1000000; i++) shared = (unsigned __int128)i << 64 | ~i;
        done = 1;
        return NULL;
    }
    uint64_t torn = 0, n = 0, h = 0;
    while (!done && n < 2000000) {
        unsigned __int128 v = shared;
        n++;
        window();
        if ((uint64_t)(v >> 64) != ~(uint64_t)v) {
            torn++;
            h = mix(h, (uint64_t)(v >> 64));
        }
    }
    printf("%lu torn of %lu, %016lx\n", torn, n, h);
    return NULL;
}
int main(void) {
    race(2, body);
    return 0;
}

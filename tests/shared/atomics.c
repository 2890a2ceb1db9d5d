/* Counters on two pages, by four processes. */
#include "shared.h"

static _Atomic long *c;

static void count(int self) {
    uint64_t h = 0;
    for (int k = 0; k < 3000; k++) {
        h = mix(h, (uint64_t)atomic_fetch_add(&c[0], 1));
        if (k % 50 == 0) h = mix(h, (uint64_t)atomic_fetch_add(&c[512], 1));
    }
    printf("%d saw %016lx\n", self, h);
}

int main(void) {
    c = share(16384);
    in_children(4, count);
    printf("%ld %ld\n", c[0], c[512]);
    return 0;
}

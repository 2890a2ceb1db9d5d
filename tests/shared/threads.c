/* Processes with several threads each, all of them at the same memory. */
#include "shared.h"

static _Atomic long *c;

static void *count(void *arg) {
    uint64_t h = 0;
    for (int k = 0; k < 800; k++) h = mix(h, (uint64_t)atomic_fetch_add(&c[k % 2 * 512], 1));
    *(uint64_t *)arg = h;
    return NULL;
}

static void work(int self) {
    pthread_t t[3];
    uint64_t h[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, count, &h[i]);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    printf("%d: %016lx %016lx %016lx\n", self, h[0], h[1], h[2]);
}

int main(void) {
    c = share(8192);
    in_children(2, work);
    printf("%ld %ld\n", c[0], c[512]);
    return c[0] + c[512] != 4800;
}

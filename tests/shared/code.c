/* Code in memory that processes share: one writes it, both run it, without a lock. */
#include "shared.h"

#define ROUNDS 400

static uint8_t *w, *x;

static int run(int at) { return ((int (*)(void))(x + at))(); }

static void put(int at, int v) {
    uint8_t fn[6] = {0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(fn + 1, &v, 4);
    memcpy(w + at, fn, 6);
}

static void work(int who) {
    uint64_t sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        w[1] = (uint8_t)(who * 100 + i % 50);
        sum = mix(sum, (uint64_t)run(0));
        w[4096 - 3 + 2] = (uint8_t)i; /* the low byte of what crosses the page's end */
        sum = mix(sum, (uint64_t)run(4096 - 3));
    }
    printf("%d: %016lx\n", who, sum);
}

int main(void) {
    int fd = memfd_create("code", 0);
    if (ftruncate(fd, 16384)) abort();
    w = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    x = mmap(NULL, 16384, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    put(0, 0), put(4096 - 3, 0);
    in_children(2, work);
    w = x = mmap(NULL, 16384, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    put(0, 0), put(4096 - 3, 0);
    in_children(2, work);
    return 0;
}

/* The same work by one thread and by two: prints seconds for each and the speed-up. No shared writes between threads. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CELLS = 4096 };
static int units;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* Mixed work: table lookups, multiplications, unpredictable branches, calls through a pointer. */
static uint64_t add(uint64_t a, uint64_t b) { return a + b; }
static uint64_t mix(uint64_t a, uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15ull; }

static void *work(void *arg) {
    int n = *(int *)arg;
    uint32_t *table = malloc(CELLS * sizeof *table);
    uint64_t (*volatile ops[2])(uint64_t, uint64_t) = {add, mix}, x = 1;
    for (int i = 0; i < CELLS; i++) table[i] = i * 2654435761u;
    for (int u = 0; u < n; u++)
        for (int i = 0; i < 200000; i++) {
            uint32_t v = table[x % CELLS];
            x = ops[v >> 31](x, v);
            table[(x >> 20) % CELLS] = v + i;
        }
    free(table);
    return (void *)(uintptr_t)x;
}

static double run(int threads) {
    pthread_t t[2];
    int each = units / threads;
    double begin = seconds();
    for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, work, &each);
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    return seconds() - begin;
}

int main(int argc, char **argv) {
    units = argc > 1 ? atoi(argv[1]) : 800;
    double one = run(1), two = run(2);
    printf("%.4f %.4f %.3f\n", one, two, one / two);
}

// Threads map and unmap; who gets which address depends on the order.
#include "race.h"
#include <sys/mman.h>
static uint64_t digest[3];
static char *volatile last;
static int same[3];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 120; i++) {
        size_t size = 4096u * (size_t)(1 + i % 4);
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == last) same[me]++;
        p[0] = (char)i;
        digest[me] = mix(digest[me], (uint64_t)p);
        last = p;
        if (i % 9 == 0) sched_yield();
        munmap(p, size);
    }
    return NULL;
}
int main(void) {
    race(3, body);
    for (int i = 0; i < 3; i++) printf("thread %d: %d the same, %016lx\n", i, same[i], digest[i]);
    return 0;
}

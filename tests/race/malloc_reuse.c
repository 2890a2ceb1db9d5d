// Addresses that malloc gives out again, and a thread that uses memory after it was freed.
#include "race.h"
static char *volatile shared;
static volatile int done, reused;
static uint64_t digest[3];
static int first[3];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    char *mine[16] = {0};
    for (int i = 0; i < 3000; i++) {
        char *p = malloc(24 + (size_t)(i % 5) * 16);
        memset(p, (int)me + 1, 24);
        digest[me] = mix(digest[me], (uint64_t)p);
        char *old = shared;
        if (old == p) reused++;
        shared = p; /* somebody may still look at it when it is freed */
        first[me] += old ? ((volatile char *)old)[20] : 0;
        free(mine[i % 16]);
        mine[i % 16] = p;
    }
    for (int i = 0; i < 16; i++) free(mine[i]);
    return NULL;
}
int main(void) {
    race(3, body);
    for (int i = 0; i < 3; i++) printf("thread %d: %d, %016lx\n", i, first[i], digest[i]);
    printf("%d met again\n", reused);
    return 0;
}

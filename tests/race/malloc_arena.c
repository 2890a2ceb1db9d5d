// Threads allocate, hand over and free each other's memory; the addresses are printed.
#include "race.h"
static void *volatile box[32];
static uint64_t digest[4];
static int taken[4];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 2000; i++) {
        int at = (i * 7 + (int)me) % 32;
        void *mine = malloc((size_t)(i % 300) + 1);
        void *other = __atomic_exchange_n(&box[at], mine, __ATOMIC_ACQ_REL);
        if (other) {
            taken[me]++;
            digest[me] = mix(digest[me], (uint64_t)other);
            free(other);
        }
    }
    return NULL;
}
int main(void) {
    race(4, body);
    for (int i = 0; i < 4; i++) printf("thread %d took %d, %016lx\n", i, taken[i], digest[i]);
    for (int i = 0; i < 4; i++) printf("%p ", box[i * 8]);
    puts("");
    return 0;
}

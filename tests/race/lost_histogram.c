// A histogram that several threads fill without a lock.
#include "race.h"
static volatile unsigned bin[16];
static void *body(void *arg) {
    uint64_t r = (uint64_t)(intptr_t)arg;
    for (int i = 0; i < 250000; i++) {
        r = mix(r, (uint64_t)i);
        unsigned v = bin[r & 15];
        window();
        bin[r & 15] = v + 1;
    }
    return NULL;
}
int main(void) {
    race(4, body);
    unsigned all = 0;
    for (int i = 0; i < 16; i++) {
        printf("%u ", bin[i]);
        all += bin[i];
    }
    printf("\nsum %u of 1000000\n", all);
    return 0;
}

// Two bit fields of one word, each with a thread that believes it is alone.
#include "race.h"
static volatile struct { unsigned a : 12, b : 12, c : 8; } shared;
static volatile uint64_t digest[3];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    uint64_t h = 0;
    for (unsigned i = 0; i < 300000; i++) {
        window();
        if (me == 0) {
            shared.a = i;
            window();
            if (shared.a != (i & 4095)) h = mix(h, i);
        } else if (me == 1) {
            shared.b = i;
            window();
            if (shared.b != (i & 4095)) h = mix(h, i);
        } else {
            shared.c = i;
            window();
            if (shared.c != (i & 255)) h = mix(h, i);
        }
    }
    digest[me] = h;
    return NULL;
}
int main(void) {
    race(3, body);
    printf("%u %u %u\n", shared.a, shared.b, shared.c);
    for (int i = 0; i < 3; i++) printf("overwritten under %d: %016lx\n", i, digest[i]);
    return 0;
}

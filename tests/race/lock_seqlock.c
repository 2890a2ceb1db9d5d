// A sequence lock whose readers do not look at the sequence again.
#include "race.h"
static volatile unsigned seq;
static volatile uint64_t x, y;
static volatile int done;
static void *body(void *arg) {
    if (arg) {
        for (uint64_t i = 0; i < 500000; i++) {
            seq++;
            x = i;
            window();
            y = i * 3;
            seq++;
        }
        done = 1;
        return NULL;
    }
    uint64_t h = 0;
    int n = 0, odd = 0, wrong = 0, moved = 0;
    for (; !done && n < 500000; n++) {
        window();
        unsigned s = seq;
        if (s & 1) {
            odd++;
            continue;
        }
        uint64_t a = x, b = y;
        if (b != a * 3) {
            wrong++;
            h = mix(h, a ^ b << 20);
        }
        if (seq != s) moved++;
    }
    printf("%d reads, %d while writing, %d wrong, %d overtaken, %016lx\n", n, odd, wrong, moved, h);
    return NULL;
}
int main(void) {
    race(2, body);
    return 0;
}

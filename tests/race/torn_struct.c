// A structure of 64 bytes is copied while it is written.
#include "race.h"
struct big {
    uint64_t w[8];
};
static volatile struct big shared;
static volatile int done;
static void *body(void *arg) {
    if (arg) {
        for (uint64_t i = 1; i < 150000; i++)
            for (int k = 0; k < 8; k++) {
                shared.w[k] = i;
                if (k == 3) window();
            }
        done = 1;
        return NULL;
    }
    uint64_t h = 0;
    int torn = 0, whole = 0;
    for (int n = 0; n < 400000 && !done; n++) {
        window();
        struct big copy;
        for (int k = 0; k < 8; k++) copy.w[k] = shared.w[k];
        int differs = 0;
        for (int k = 1; k < 8; k++) differs |= copy.w[k] != copy.w[0];
        differs ? torn++ : whole++;
        h = mix_bytes(h, &copy, 16);
    }
    printf("%d torn, %d whole, %016lx\n", torn, whole, h);
    return NULL;
}
int main(void) {
    race(2, body);
    return 0;
}

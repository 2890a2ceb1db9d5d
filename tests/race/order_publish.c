// A pointer is published before what it points to is filled in.
#include "race.h"
struct thing {
    volatile int part[6];
};
static struct thing things[2000];
static struct thing *volatile published;
static volatile int done;
static void *body(void *arg) {
    if (arg) {
        for (int i = 0; i < 2000; i++) {
            published = &things[i];
            window();
            for (int k = 0; k < 6; k++) things[i].part[k] = i + k;
        }
        done = 1;
        return NULL;
    }
    int bad = 0, looks = 0;
    uint64_t h = 0;
    while (!done && looks < 3000000) {
        struct thing *t = published;
        looks++;
        window();
        if (!t) continue;
        int i = (int)(t - things);
        for (int k = 0; k < 6; k++)
            if (t->part[k] != i + k) {
                bad++;
                h = mix(h, (uint64_t)(i * 8 + k));
                break;
            }
    }
    printf("%d looks, %d times unfinished, %016lx\n", looks, bad, h);
    return NULL;
}
int main(void) {
    race(2, body);
    return 0;
}

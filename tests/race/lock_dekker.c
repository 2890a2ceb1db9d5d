// Dekker's flags without a fence: both may enter.
#include "race.h"
static volatile int want[2], turn, count, both;
static volatile int inside[2];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 60000; i++) {
        want[me] = 1;
        for (int spin = 0; want[!me] && spin < 30; spin++)
            if (turn != me) {
                want[me] = 0;
                for (int k = 0; turn != me && k < 10; k++) __builtin_ia32_pause();
                want[me] = 1;
            }
        inside[me] = 1;
        window();
        if (inside[!me]) both++;
        count++;
        inside[me] = 0;
        turn = !me;
        want[me] = 0;
    }
    return NULL;
}
int main(void) {
    race(2, body);
    printf("count %d of 120000, both inside %d times\n", count, both);
    return 0;
}

// One thread corrupts a pointer, another one follows it: sometimes in time to crash, sometimes not.
#include "race.h"
static int good = 1;
static int *volatile pointer = &good;
static volatile int done;
static volatile int loads;
static void *body(void *arg) {
    if (arg) {
        for (int i = 0; i < 100000; i++) {
            if (i % 20000 == 19999) {
                pointer = (int *)8;
                work(3);
                window();
            }
            pointer = &good;
            window();
        }
        done = 1;
        return NULL;
    }
    for (loads = 0; !done && loads < 1000000; loads++) {
        window();
        if (loads % 4096 == 0) {
            char line[40];
            int n = snprintf(line, sizeof line, "alive after %d\n", loads);
            if (write(1, line, (size_t)n) != n) break;
        }
        good = *pointer;
    }
    return NULL;
}
int main(void) {
    race(2, body);
    printf("survived %d loads\n", loads);
    return 0;
}

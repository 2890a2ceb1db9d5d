// A lock that is tested, then set.
#include "race.h"
static volatile int lock, inside, count, together;
static void *body(void *arg) {
    for (int i = 0; i < 60000; i++) {
        for (int spin = 0; lock && spin < 1000; spin++) sched_yield();
        window();
        lock = 1;
        if (inside++) together++;
        int v = count;
        window();
        count = v + 1;
        inside--;
        lock = 0;
    }
    return NULL;
}
int main(void) {
    race(3, body);
    printf("count %d of 180000, %d times together, %d inside\n", count, together, inside);
    return 0;
}

// Peterson's lock with plain stores, for three threads where it is meant for two.
#include "race.h"
static volatile int flag[3], victim, count, inside, crowd;
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 30000; i++) {
        flag[me] = 1;
        victim = (int)me;
        for (int spin = 0; flag[(me + 1) % 3] && victim == me && spin < 20; spin++) __builtin_ia32_pause();
        int n = ++inside;
        window();
        if (n > 1) crowd += n - 1;
        count++;
        inside--;
        flag[me] = 0;
    }
    return NULL;
}
int main(void) {
    race(3, body);
    printf("count %d of 90000, crowd %d, inside %d\n", count, crowd, inside);
    return 0;
}

// A home-made barrier that cannot be used twice in a row: fast threads overtake slow ones.
#include "race.h"
enum { N = 4, ROUNDS = 200 };
static volatile int arrived, round_of[N], apart[N], gave_up[N];
static void wait_all(intptr_t me) {
    arrived++; /* not atomic, either */
    int spin = 0;
    while (arrived % N != 0 && spin < 300) {
        if (++spin % 10 == 0) sched_yield();
    }
    if (spin == 300) {
        gave_up[me]++;
        arrived = 0;
    }
}
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < ROUNDS; i++) {
        round_of[me] = i;
        wait_all(me);
        for (int k = 0; k < N; k++)
            if (round_of[k] != i) apart[me]++;
    }
    return NULL;
}
int main(void) {
    race(N, body);
    for (int i = 0; i < N; i++)
        printf("thread %d: others elsewhere %d times, gave up %d times\n", i, apart[i], gave_up[i]);
    printf("arrived %d\n", arrived);
    return 0;
}

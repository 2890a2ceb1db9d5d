// Whoever does not get the lock at once does something else: who did how much is a race.
#include "race.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int got[4], missed[4];
static uint64_t order;
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 3000; i++)
        if (pthread_mutex_trylock(&lock) == 0) {
            got[me]++;
            order = mix(order, (uint64_t)(me * 10000 + i));
            work(50);
            if (i % 200 == 0) sched_yield();
            pthread_mutex_unlock(&lock);
        } else {
            missed[me]++;
        }
    return NULL;
}
int main(void) {
    race(4, body);
    for (int i = 0; i < 4; i++) printf("thread %d: %d got, %d missed\n", i, got[i], missed[i]);
    printf("%016lx\n", order);
    return 0;
}

// Two threads guard the same data by different mutexes.
#include "race.h"
static pthread_mutex_t lock[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static volatile long value, copy;
static volatile int unequal[4];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 40000; i++) {
        pthread_mutex_lock(&lock[me & 1]);
        long v = value + 1;
        window();
        value = v;
        if (i % 16 == 0) work(40);
        copy = v;
        if (value != copy) unequal[me]++;
        pthread_mutex_unlock(&lock[me & 1]);
    }
    return NULL;
}
int main(void) {
    race(4, body);
    printf("value %ld, copy %ld; unequal %d %d %d %d\n", value, copy, unequal[0], unequal[1], unequal[2], unequal[3]);
    return 0;
}

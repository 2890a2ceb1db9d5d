// Double-checked locking without the second check: more than one thread makes the thing.
#include "race.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *volatile instance[64];
static volatile int made[64], used[64];
static int *get(int which, int me) {
    if (!instance[which]) {
        pthread_mutex_lock(&lock);
        int *p = malloc(sizeof *p);
        *p = me;
        work(500);
        instance[which] = p;
        made[which]++;
        pthread_mutex_unlock(&lock);
    }
    return instance[which];
}
static void *body(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < 64; i++)
        if (*get(i, me) == me) used[i]++;
    return NULL;
}
int main(void) {
    race(4, body);
    for (int i = 0; i < 64; i++) printf("%d%c%d ", made[i], "abcd"[*instance[i]], used[i]);
    puts("");
    return 0;
}

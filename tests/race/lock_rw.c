// Writers that hold a read-write lock for reading only.
#include "race.h"
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile int table[16];
static volatile int changed[4];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    for (int i = 0; i < 20000; i++) {
        pthread_rwlock_rdlock(&lock);
        int at = i % 16, old = table[at];
        window();
        table[at] = old + 1;
        if (table[at] != old + 1) changed[me]++;
        pthread_rwlock_unlock(&lock);
        if (i % 500 == 0) {
            pthread_rwlock_wrlock(&lock);
            table[(at + 1) % 16] += 10;
            pthread_rwlock_unlock(&lock);
        }
    }
    return NULL;
}
int main(void) {
    race(4, body);
    for (int i = 0; i < 16; i++) printf("%d ", table[i]);
    printf("\nchanged %d %d %d %d\n", changed[0], changed[1], changed[2], changed[3]);
    return 0;
}

// Money moves between accounts without locks; some is made, some is lost.
#include "race.h"
enum { ACCOUNTS = 8 };
static volatile long account[ACCOUNTS];
static void *body(void *arg) {
    uint64_t r = (uint64_t)(intptr_t)arg * 977 + 1;
    for (int i = 0; i < 200000; i++) {
        r = mix(r, (uint64_t)i);
        unsigned from = r % ACCOUNTS, to = (r >> 8) % ACCOUNTS;
        long sum = (long)(r >> 16) % 100;
        long v = account[from];
        window();
        account[from] = v - sum;
        account[to] += sum;
    }
    return NULL;
}
int main(void) {
    for (int i = 0; i < ACCOUNTS; i++) account[i] = 1000;
    race(3, body);
    long all = 0;
    for (int i = 0; i < ACCOUNTS; i++) {
        printf("%ld ", account[i]);
        all += account[i];
    }
    printf("\n%ld of %d\n", all, ACCOUNTS * 1000);
    return all != ACCOUNTS * 1000;
}

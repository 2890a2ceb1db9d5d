/* A small ledger with a bug, for `make demo`: two clerks book payments; long after one of them has written where it should
 * not, the auditor falls over the damage. Where it falls says nothing about who did it, or when. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAYS 31
#define ROUNDS 2000

struct account {
    long booked[DAYS]; /* by day of the month, counted from 0 */
    const char *owner;
};

static struct account accounts[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned next(unsigned *seed) { return *seed = *seed * 1103515245u + 12345u; }

static void book(struct account *a, unsigned day, long amount) {
    a->booked[day] = amount;
}

static void *clerk(void *arg) {
    unsigned seed = (unsigned)(size_t)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct account *a = &accounts[next(&seed) >> 16 & 7];
        unsigned day = (next(&seed) >> 16) % DAYS;
        if (i == ROUNDS / 3 && arg == (void *)2) day = DAYS; /* the last of the month, counted from 1 */
        pthread_mutex_lock(&lock);
        book(a, day, (long)(next(&seed) >> 16 & 0xfff));
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    static const char *const names[8] = {"ada", "bob", "cyd", "dee", "eve", "fay", "gus", "hal"};
    for (int i = 0; i < 8; i++) accounts[i].owner = names[i];
    pthread_t clerks[2];
    for (size_t i = 0; i < 2; i++) pthread_create(&clerks[i], NULL, clerk, (void *)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(clerks[i], NULL);
    puts("the month is over; auditing");
    fflush(stdout);
    for (int i = 0; i < 8; i++) {
        long sum = 0;
        for (int d = 0; d < DAYS; d++) sum += accounts[i].booked[d];
        printf("%-8.3s %8ld (%zu letters)\n", accounts[i].owner, sum, strlen(accounts[i].owner));
    }
    return 0;
}

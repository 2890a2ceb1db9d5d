/* Threads that wait for each other by spinning with `pause`, as barriers of OpenMP do: 60,000 times, and each time a thread that waits out
 * its slice of time would take a millisecond or more (timeout in the manifest). */
#include <stdatomic.h>

#include "guest.h"

#define ROUNDS 20000
#define THREADS 3

static _Atomic int turn;
static int visits[THREADS];

static void *take_turns(void *arg) {
    int me = (int)(long)arg;
    for (int round = 0; round < ROUNDS; round++) {
        while (atomic_load(&turn) % THREADS != me) __builtin_ia32_pause();
        visits[me]++;
        atomic_fetch_add(&turn, 1);
    }
    return NULL;
}

int main(void) {
    pthread_t thread[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, take_turns, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    printf("%d turns: %d %d %d\n", turn, visits[0], visits[1], visits[2]);
    return 0;
}

// cflags: -Wl,-z,execstack -Wno-trampolines
/* Trampolines that another thread is the first to run, while the one on whose stack they are goes on calling and returning in the same
 * page: what the engine itself keeps on that stack meets a page that has just become read-only. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "guest.h"

#define ROUNDS 1500

static _Atomic(int (*)(int)) given;
static atomic_int answer;

static void *run_what_is_given(void *unused) {
    for (int rounds = 0; rounds < ROUNDS;) {
        int (*f)(int) = atomic_exchange(&given, NULL);
        if (!f) continue;
        atomic_store(&answer, f(1));
        rounds++;
    }
    return unused;
}

__attribute__((noinline)) static int leaf(int n) {
    volatile int x = n;
    return x + 1;
}
static int (*volatile leaf_by_pointer)(int) = leaf;

__attribute__((noinline)) static int down(int n) {
    volatile int x = n;
    return n ? down(n - 1) + x : 0;
}

__attribute__((noinline)) static long round_of(int k) {
    int local = k;
    int nested(int x) { return x + local; }
    long wrong = 0;
    atomic_store(&answer, 0);
    atomic_store(&given, nested);
    while (!atomic_load(&answer)) wrong += leaf_by_pointer(1) - 2 + leaf(3) - 4 + down(2) - 3;
    return wrong * 1000000 + atomic_load(&answer);
}

/* at another place of the stack each time: most trampolines are at an address that has not been executed */
__attribute__((noinline)) static long deeper(int depth, int k) {
    volatile char room[200];
    room[0] = 1;
    return depth ? deeper(depth - 1, k) + room[0] - 1 : round_of(k);
}

int main(void) {
    pthread_t t;
    pthread_create(&t, NULL, run_what_is_given, NULL);
    long sum = 0;
    for (int k = 1; k <= ROUNDS; k++) sum += deeper(k % 50, k);
    pthread_join(t, NULL);
    printf("sum %ld\n", sum);
    return finish();
}

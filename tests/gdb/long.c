/* Computes for a while, so that a search can be interrupted; and calls a function often, for conditions that are seldom true. */
#include <stdio.h>
#include <stdlib.h>

/* Pages of their own. */
volatile unsigned long state __attribute__((aligned(4096))) = 1;
volatile int never __attribute__((aligned(4096))), once;

static void mark(void) { once++; }

static long visit(long i) { return i * 3; }

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1000, visits = argc > 2 ? atol(argv[2]) : 0, sum = 0;
    mark();
    for (long i = 0; i < n * 1000; i++) state = state * 6364136223846793005ul + 1442695040888963407ul;
    for (long i = 0; i < visits; i++) sum += visit(i);
    if (state == 7) never = 1;
    mark();
    printf("%lx %ld\n", state, sum);
    return 0;
}

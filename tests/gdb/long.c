/* Computes for a while, so that a search can be interrupted. */
#include <stdio.h>
#include <stdlib.h>

/* Pages of their own. */
volatile unsigned long state __attribute__((aligned(4096))) = 1;
volatile int never __attribute__((aligned(4096))), once;

static void mark(void) { once++; }

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1000;
    mark();
    for (long i = 0; i < n * 1000; i++) state = state * 6364136223846793005ul + 1442695040888963407ul;
    if (state == 7) never = 1;
    mark();
    printf("%lx\n", state);
    return 0;
}

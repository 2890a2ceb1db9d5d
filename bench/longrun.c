/* Computes for ROUNDS rounds of about a millisecond on a working set of MB megabytes, of which it writes RATE MB/s; then crashes.
 * Usage: longrun ROUNDS MB RATE */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile uint64_t sum;                         /* written every round: for a watchpoint that is hit often */
uint64_t unused[1024] __attribute__((aligned(4096))); /* for a watchpoint that is never hit; a page of its own */

static uint64_t compute(uint64_t x) {
    for (int i = 0; i < 750000; i++) x = x * 6364136223846793005ull + 1442695040888963407ull + (x >> 33);
    return x;
}

int main(int argc, char **argv) {
    unsigned long rounds = strtoul(argv[1], NULL, 10), mb = strtoul(argv[2], NULL, 10),
                  rate = strtoul(argv[3], NULL, 10);
    size_t pages = mb * 256, written = rate * 256 / 1000, at = 0;
    uint64_t *memory = malloc(pages * 4096);
    for (size_t i = 0; i < pages * 512; i++) memory[i] = i * 0x9e3779b97f4a7c15ull;
    for (unsigned long r = 0; r < rounds; r++) {
        sum = compute(sum + r);
        for (size_t i = 0; i < written; i++, at = (at + 1) % pages) memory[at * 512 + r % 512] = sum ^ i;
    }
    printf("%lx\n", (unsigned long)(sum ^ unused[sum % 1024] ^ memory[sum % (pages * 512)]));
    fflush(stdout);
    *(volatile int *)8 = 1;
}

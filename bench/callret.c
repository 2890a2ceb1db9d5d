/* Bound by calls and returns: a recursion (few sites, predicted) and a large footprint of small functions that call each
 * other from many places, as compilers and interpreters do. Prints a checksum. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline, noipa)) static uint64_t fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

#define LEAF(i)                                                                     \
    __attribute__((noinline, noipa, unused)) static uint64_t leaf_##i(uint64_t x) { \
        return x * (2 * i + 3) + (x >> (i % 13 + 1));                               \
    }
#define MID(i, a, b, c)                                                    \
    __attribute__((noinline, noipa)) static uint64_t mid_##i(uint64_t x) { \
        x = leaf_##a(x) ^ leaf_##b(x + i);                                 \
        return x & 64 ? leaf_##c(x) : leaf_##a(x + 1) + leaf_##b(x);       \
    }
#define TEN(M, t) M(t##0) M(t##1) M(t##2) M(t##3) M(t##4) M(t##5) M(t##6) M(t##7) M(t##8) M(t##9)
#define HUNDRED(M, h) \
    TEN(M, h##0)      \
    TEN(M, h##1) TEN(M, h##2) TEN(M, h##3) TEN(M, h##4) TEN(M, h##5) TEN(M, h##6) TEN(M, h##7) TEN(M, h##8) TEN(M, h##9)
HUNDRED(LEAF, 1)
HUNDRED(LEAF, 2)

/* leaves are numbered 100..299, middles 10..99 */
#define MID2(i) MID(i, 1##i, 2##i, 1##i)
TEN(MID2, 1)
TEN(MID2, 2)
TEN(MID2, 3)
TEN(MID2, 4)
TEN(MID2, 5)
TEN(MID2, 6)
TEN(MID2, 7)
TEN(MID2, 8)
TEN(MID2, 9)

#define CALL(i) x = mid_##i(x);
__attribute__((noinline, noipa)) static uint64_t sweep(uint64_t x) {
    TEN(CALL, 1)
    TEN(CALL, 2) TEN(CALL, 3) TEN(CALL, 4) TEN(CALL, 5) TEN(CALL, 6) TEN(CALL, 7) TEN(CALL, 8) TEN(CALL, 9) return x;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 700000;
    uint64_t x = fib(34);
    for (int i = 0; i < rounds; i++) x = sweep(x + i);
    printf("%llx\n", (unsigned long long)x);
}

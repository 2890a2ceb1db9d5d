/* Two processes contend for a page, so that accesses to it leave the code cache; then each runs through much code of the same file. */
#include "shared.h"

#define ROUNDS 3000
static atomic_long *c;

#define F(n) \
    __attribute__((noinline)) static long f##n(long x) { return x % (n + 2) ? x * 3 + n : x / 2 - n; }
#define F4(n) F(n##0) F(n##1) F(n##2) F(n##3)
#define F16(n) F4(n##0) F4(n##1) F4(n##2) F4(n##3)
#define F64(n) F16(n##0) F16(n##1) F16(n##2) F16(n##3)
#define F256(n) F64(n##0) F64(n##1) F64(n##2) F64(n##3)
#define P(n) f##n,
#define P4(n) P(n##0) P(n##1) P(n##2) P(n##3)
#define P16(n) P4(n##0) P4(n##1) P4(n##2) P4(n##3)
#define P64(n) P16(n##0) P16(n##1) P16(n##2) P16(n##3)
#define P256(n) P64(n##0) P64(n##1) P64(n##2) P64(n##3)
F256(1)
F256(2)
static long (*const functions[])(long) = {P256(1) P256(2)};

/* Each waits for its turn: the page changes hands every time. */
static void body(int who) {
    long x = who;
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_load(c) % 2 != who) sched_yield();
        atomic_fetch_add(c, 1);
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) x = functions[i](x);
    printf("%d: %ld\n", who, x);
}

int main(void) {
    c = share(4096);
    in_children(2, body);
    printf("%ld\n", atomic_load(c));
}

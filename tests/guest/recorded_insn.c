/* Instructions whose results a recording keeps, by hand or not: destinations of every size, flags, faults. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CF 1
#define ARITH 0x8d5

static sigjmp_buf back;
static volatile int caught;
static void on_signal(int s, siginfo_t *i, void *c) {
    caught = s;
    siglongjmp(back, 1);
}

static void cpuid(uint32_t leaf, uint32_t sub, uint32_t r[4]) {
    __asm__ volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(sub));
}

static const char *ok(int good) { return good ? "ok" : "WRONG"; }

/* rbx all ones before; flags all set before; the upper parts must be what the operand size says. */
#define RANDOM(name, insn, upper, want)                                                                      \
    do {                                                                                                     \
        uint64_t v = ~0ull, flags;                                                                           \
        int tries = 100;                                                                                     \
        do {                                                                                                 \
            v = ~0ull;                                                                                       \
            __asm__ volatile("pushq $0x8d7; popfq; " insn "; pushfq; popq %1" : "+b"(v), "=r"(flags)::"cc"); \
        } while (!(flags & CF) && --tries);                                                                  \
        printf("%s: upper %s, flags %s\n", name, ok((v & (upper)) == (want)), ok((flags & ARITH) == CF));    \
    } while (0)

int main(void) {
    struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &sa, NULL);
    sigaction(SIGILL, &sa, NULL);

    uint32_t lo, hi, aux;
    uint64_t a = ~0ull, d = ~0ull, c = ~0ull, last = 0;
    int monotonic = 1;
    for (int i = 0; i < 100; i++) {
        __asm__ volatile("rdtsc" : "+a"(a), "+d"(d));
        if (a >> 32 || d >> 32 || (d << 32 | a) < last) monotonic = 0;
        last = d << 32 | a;
    }
    printf("rdtsc: %s\n", ok(monotonic));
    __asm__ volatile("rdtscp" : "+a"(a), "+d"(d), "+c"(c));
    printf("rdtscp: %s\n", ok((d << 32 | a) >= last && !(c >> 32)));

    uint32_t r[4];
    cpuid(0, 0, r);
    printf("vendor %.4s%.4s%.4s, %u\n", (char *)&r[1], (char *)&r[3], (char *)&r[2], r[0]);
    cpuid(7, 0, r);
    printf("features %x %x\n", r[1], r[2]);
    int rdseed = r[1] >> 18 & 1, rdpid = r[2] >> 22 & 1;
    cpuid(1, 0, r);
    int rdrand = r[2] >> 30 & 1;
    cpuid(0xd, 1, r);
    int xgetbv1 = r[0] >> 2 & 1;

    if (rdrand) {
        RANDOM("rdrand 16", "rdrand %%bx", ~0xffffull, ~0xffffull);
        RANDOM("rdrand 32", "rdrand %%ebx", ~0xffffffffull, 0ull);
        RANDOM("rdrand 64", "rdrand %%rbx", 0ull, 0ull);
    }
    if (rdseed) {
        RANDOM("rdseed 16", "rdseed %%bx", ~0xffffull, ~0xffffull);
        RANDOM("rdseed 32", "rdseed %%ebx", ~0xffffffffull, 0ull);
        uint64_t v = 0, first = 0;
        for (int i = 0; i < 100 && (!v || !first); i++) {
            first = v;
            __asm__ volatile("rdseed %0" : "=r"(v)::"cc");
        }
        printf("rdseed 64: %s\n", ok(v != first));
    }
    if (rdpid) {
        uint64_t v = ~0ull;
        __asm__ volatile("mov $-1,%%r14; rdpid %%r14; mov %%r14,%0" : "=r"(v)::"r14");
        printf("rdpid: %s\n", ok(!(v >> 32)));
    }
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    printf("xgetbv 0: %x %x\n", hi, lo);
    if (xgetbv1) {
        uint32_t lo1, hi1;
        __asm__ volatile("xgetbv" : "=a"(lo1), "=d"(hi1) : "c"(1));
        printf("xgetbv 1: %s\n", ok(!(lo1 & ~lo) && !(hi1 & ~hi)));
    }
    aux = 7;
    if (sigsetjmp(back, 1) == 0) __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(aux));
    printf("xgetbv 7: signal %d\n", caught);
    return 0;
}

/* Division by a word of contended memory, and by zero: the fault is the program's. */
#include <setjmp.h>

#include "shared.h"

#define ROUNDS 60

static struct {
    _Atomic int whose;
    uint64_t divisor[2], faults[2];
} * s;

static sigjmp_buf back;
static void on_fault(int signo) { siglongjmp(back, signo); }

static uint64_t divide(uint64_t by, const volatile uint64_t *divisor) {
    uint64_t high = 0;
    __asm__ volatile("divq %2" : "+a"(by), "+d"(high) : "m"(*divisor) : "cc");
    return by;
}

static void work(int self) {
    uint64_t h = 0;
    signal(SIGFPE, on_fault);
    for (int i = 0; i < ROUNDS; i++) {
        while (s->whose != self) sched_yield();
        s->divisor[self] = (uint64_t)(i % 4);
        if (sigsetjmp(back, 1) == 0)
            h = mix(h, divide(1000, &s->divisor[self]));
        else
            s->faults[self]++;
        s->whose = !self;
    }
    printf("%d: %016lx\n", self, h);
}

int main(void) {
    s = share(4096);
    in_children(2, work);
    printf("%lu and %lu faults\n", s->faults[0], s->faults[1]);
    return s->faults[0] + s->faults[1] != 2 * ROUNDS / 4;
}

/* Alignment checks: the program's AC flag is on at a fault, in its handler, and behind what interrupts it. */
#include "guest.h"

#define AC 0x40000ul

static uint64_t flags_now(void) {
    uint64_t flags;
    __asm__ volatile("sub $128, %%rsp; pushfq; popq %0; add $128, %%rsp" : "=r"(flags)::"memory");
    return flags;
}

static void set_flags(uint64_t flags) {
    __asm__ volatile("sub $128, %%rsp; pushq %0; popfq; add $128, %%rsp" ::"r"(flags) : "memory", "cc");
}

static volatile sig_atomic_t faults, alarms;
static volatile uint64_t in_handler;

/* Of the handlers only what is aligned for sure. */
static void on_bus(int signo, siginfo_t *info, void *context) {
    in_handler = flags_now();
    set_flags(in_handler & ~AC);
    ucontext_t *uc = context;
    if (info->si_code == BUS_ADRALN && (uc->uc_mcontext.gregs[REG_EFL] & AC)) faults++;
    uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)AC; /* the load succeeds then */
}

static void on_alarm(int signo, siginfo_t *info, void *context) {
    set_flags(flags_now() & ~AC);
    alarms++;
}

static long load(const char *at) {
    long value;
    __asm__ volatile("mov (%1), %0" : "=r"(value) : "r"(at) : "memory");
    return value;
}

int main(void) {
    _Alignas(16) char bytes[32] = "0123456789abcdef0123456789";
    struct sigaction bus = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    struct sigaction alarm = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &bus, NULL);
    sigaction(SIGALRM, &alarm, NULL);
    for (int i = 0; i < 3; i++) {
        set_flags(flags_now() | AC);
        long value = load(bytes + 1);
        CHECK(value == 0x3837363534333231);
        CHECK(!(flags_now() & AC));
    }
    printf("%d faults, AC in the handler: %d\n", (int)faults, (in_handler & AC) != 0);

    struct itimerval often = {{0, 200}, {0, 200}}, never = {0};
    setitimer(ITIMER_REAL, &often, NULL);
    set_flags(flags_now() | AC);
    for (volatile long i = 0; alarms < 50;) i = i + 1;
    CHECK(flags_now() & AC);
    set_flags(flags_now() & ~AC);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("interrupted\n");
    return failures != 0;
}

/* A thread has a segment of the LDT in ss when another one takes it away: it gets a signal, between any two instructions. */
#include "guest.h"

#include <asm/ldt.h>

#define ROUNDS 20
static _Atomic unsigned stage; /* 0: the other one waits, 1: it is to act */
static sigjmp_buf out;
static volatile int hits;

static int set(int function, const struct user_desc *d) { return (int)syscall(SYS_modify_ldt, function, d, sizeof *d); }

static void *clear(void *arg) {
    const struct user_desc none = {0};
    for (int i = 0; i < ROUNDS; i++) {
        while (stage != 1) sched_yield();
        CHECK(set(1, &none) == 0);
        stage = 0;
    }
    return arg;
}

static void on_signal(int sig, siginfo_t *info, void *context) {
    (void)context;
    CHECK(info->si_code == SI_KERNEL && sig == SIGSEGV);
    hits++;
    siglongjmp(out, 1);
}

/* Any system call would give ss back its usual value. */
static void one_round(void) {
    const struct user_desc data = {.limit = 0xfffff, .seg_32bit = 1, .limit_in_pages = 1};
    CHECK(set(0x11, &data) == 0);
    if (sigsetjmp(out, 1)) return;
    __asm__ volatile("mov %0, %%ss" : : "r"(7));
    stage = 1;
    while (hits >= 0) {}
}

static volatile int bad_signal;
static volatile long bad_error;

static void on_bad_load(int sig, siginfo_t *info, void *context) {
    const ucontext_t *uc = context;
    CHECK(info->si_code == SI_KERNEL);
    bad_signal = sig;
    bad_error = uc->uc_mcontext.gregs[REG_ERR];
    siglongjmp(out, 1);
}

/* The registers of one instruction show what it has loaded: a system call, or a signal, ends that. */
static void load(const char *what, unsigned selector) {
    uint16_t now = 0, after = 0;
    bad_signal = 0;
    if (!sigsetjmp(out, 1))
        __asm__ volatile("mov %2, %%ss; mov %%ss, %0; mov $39, %%eax; syscall; mov %%ss, %1" /* getpid */
                         : "=m"(now), "=m"(after)
                         : "r"(selector)
                         : "rax", "rcx", "r11", "memory");
    if (bad_signal)
        printf("%s: signal %d, error %lx\n", what, bad_signal, bad_error);
    else
        printf("%s: %x, after a call %x\n", what, now, after);
}

static void load_other_ways(void) {
    unsigned low;
    uint16_t now[2];
    struct __attribute__((packed)) {
        unsigned offset;
        uint16_t selector;
    } pointer = {0x12345678, 7};
    __asm__ volatile("lss %2, %0; mov %%ss, %1" : "=r"(low), "=m"(now[0]) : "m"(pointer));
    __asm__ volatile(
        "mov %%rsp, %%rax; push $7; push %%rax; pushf; push $0x33; lea 1f(%%rip), %%rax; push %%rax; iretq\n"
        "1: mov %%ss, %0"
        : "=m"(now[1])
        :
        : "rax", "memory");
    printf("lss: %x %x, iret: %x\n", low, now[0], now[1]);
}

static void loads(void) {
    struct user_desc d = {.limit = 0xfffff, .seg_32bit = 1, .limit_in_pages = 1};
    handle(SIGSEGV, on_bad_load, 0);
    handle(SIGBUS, on_bad_load, 0);
    load("nothing there", 7);
    CHECK(set(0x11, &d) == 0);
    load("data", 7);
    load("not ours", 4);
    load("null", 0);
    load_other_ways();
    d.read_exec_only = 1;
    CHECK(set(0x11, &d) == 0);
    load("read only", 7);
    d.contents = 2;
    CHECK(set(0x11, &d) == 0);
    load("code", 7);
    d = (struct user_desc){.limit = 0xfffff, .seg_32bit = 1, .seg_not_present = 1};
    CHECK(set(0x11, &d) == 0);
    load("not present", 7);
    load("the usual", 0x2b);
}

int main(void) {
    pthread_t other;
    loads();
    handle(SIGSEGV, on_signal, 0);
    pthread_create(&other, NULL, clear, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        one_round();
        while (stage) sched_yield();
    }
    pthread_join(other, NULL);
    printf("%d signals\n", hits);
    return finish();
}

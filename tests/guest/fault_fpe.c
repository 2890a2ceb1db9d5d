// libs: -lm
/* SIGFPE: integer division, unmasked SSE and x87 exceptions; codes, pc, and resuming after them. */
#include "guest.h"
#include <fenv.h>

static sigjmp_buf out;
static int code;
static bool at_pc;
extern char div_here[];

static void on(int sig, siginfo_t *si, void *ctx) {
    (void)sig;
    code = si->si_code;
    uintptr_t pc = ((ucontext_t *)ctx)->uc_mcontext.gregs[REG_RIP];
    at_pc = pc == (uintptr_t)div_here && si->si_addr == (void *)pc;
    siglongjmp(out, 1);
}

static void try(const char *name, void (*f)(void)) {
    code = 0;
    if (sigsetjmp(out, 1) == 0)
        f(), printf("%s: no fault\n", name);
    else
        printf("%s: code %d%s\n", name, code, at_pc ? ", pc exact" : "");
    at_pc = false;
    fesetenv(FE_DFL_ENV);
}

static volatile int zero, minus = -1;
static volatile double dzero, done = 1, big = 1e308;
static volatile long double lzero, lone = 1;
static void div_zero(void) {
    __asm__ volatile(".globl div_here\n xor %%edx, %%edx\n div_here: divl %0" ::"m"(zero), "a"(1) : "edx");
}
static void div_overflow(void) {
    volatile int r = (int)0x80000000 / minus;
    (void)r;
}
static void mod_zero(void) {
    volatile long r = 5L % zero;
    (void)r;
}
static void sse_zero(void) {
    feenableexcept(FE_DIVBYZERO);
    volatile double r = done / dzero;
    (void)r;
}
static void sse_invalid(void) {
    feenableexcept(FE_INVALID);
    volatile double r = dzero / dzero;
    (void)r;
}
static void sse_overflow(void) {
    feenableexcept(FE_OVERFLOW);
    volatile double r = big * big;
    (void)r;
}
static void x87_zero(void) {
    feenableexcept(FE_DIVBYZERO);
    volatile long double r = lone / lzero;
    r = r + 1;
    (void)r;
}
static void x87_invalid(void) {
    feenableexcept(FE_INVALID);
    volatile long double r = lzero / lzero;
    r = r + 1;
    (void)r;
}
static void masked(void) {
    volatile double r = done / dzero;
    CHECK(r > 1e308);
}

int main(void) {
    handle(SIGFPE, on, 0);
    for (int i = 0; i < 3; i++) {
        try("div by zero", div_zero), try("div overflow", div_overflow), try("mod zero", mod_zero);
        try("sse zero", sse_zero), try("sse invalid", sse_invalid), try("sse overflow", sse_overflow);
        try("x87 zero", x87_zero), try("x87 invalid", x87_invalid), try("masked", masked);
    }
    pid_t pid = fork();
    if (!pid) {
        signal(SIGFPE, SIG_DFL);
        div_zero();
        _exit(0);
    }
    printf("default: %s\n", wait_text(pid));
    return finish();
}

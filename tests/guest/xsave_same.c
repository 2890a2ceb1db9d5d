// Which components the processor counts as unused depends on when threads were switched: in recordings xsave, xsavec and
// xsaveopt, and the frames of signals, have all that was asked for. And what was stored can be loaded again.
#include <cpuid.h>
#include <immintrin.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#define ASKED 7ull /* x87, SSE, AVX */
#define POISON 0xa5

typedef void store(void *);

static uint8_t area[4096] __attribute__((aligned(64)));
static uint64_t in_frame;

__attribute__((target("xsave"))) static void xsave(void *p) { _xsave64(p, ASKED); }
__attribute__((target("xsavec"))) static void xsavec(void *p) { _xsavec64(p, ASKED); }
__attribute__((target("xsaveopt"))) static void xsaveopt(void *p) { _xsaveopt64(p, ASKED); }
__attribute__((target("xsave"))) static void xrstor(void *p) { _xrstor64(p, ASKED); }

static void forget_all(void) {
    static uint8_t none[1024] __attribute__((aligned(64)));
    none[25] = 0x1f, none[24] = 0x80; /* mxcsr */
    xrstor(none);
}

static uint64_t word(size_t at) {
    uint64_t v;
    memcpy(&v, area + at, 8);
    return v;
}

static int wrong(const char *name, const char *what) { return printf("%s: %s\n", name, what); }

static int check(const char *name, store *f, int avx) {
    memset(area, POISON, sizeof area);
    memset(area + 512, 0, 64);
    forget_all();
    if (avx) __asm__ volatile("vpcmpeqd %%xmm5, %%xmm5, %%xmm5; vinsertf128 $1, %%xmm5, %%ymm5, %%ymm5" ::: "xmm5");
    f(area);
    __asm__ volatile("vzeroall" ::: "memory");
    if ((word(512) & ASKED) != ASKED) return wrong(name, "a component is left out");
    if (word(0) != 0x37f) return wrong(name, "x87");
    for (size_t i = 160; i < 416; i += 8)
        if (word(i) != (avx && i / 16 == 15 ? ~0ull : 0)) return wrong(name, "SSE");
    for (size_t i = 576; i < 576 + 256; i += 8)
        if (word(i) != (avx && (i - 576) / 16 == 5 ? ~0ull : 0)) return wrong(name, "AVX");
    xrstor(area);
    uint64_t high[2];
    __asm__ volatile("vextractf128 $1, %%ymm5, %0" : "=m"(high)::"memory");
    __asm__ volatile("vzeroupper" ::: "memory");
    return high[0] == (avx ? ~0ull : 0) ? 0 : wrong(name, "loaded again");
}

static void on_usr1(int sig, siginfo_t *info, void *context) {
    in_frame = ((uint64_t *)((ucontext_t *)context)->uc_mcontext.fpregs)[64];
}

int main(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX)) return 77;
    __get_cpuid_count(0xd, 1, &a, &b, &c, &d);
    int bad = 0;
    for (int avx = 0; avx < 2; avx++) {
        bad += check("xsave", xsave, avx) != 0;
        if (a & 2) bad += check("xsavec", xsavec, avx) != 0;
        if (a & 1) bad += check("xsaveopt", xsaveopt, avx) != 0;
    }
    struct sigaction action = {.sa_sigaction = on_usr1, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    forget_all();
    raise(SIGUSR1);
    if ((in_frame & ASKED) != ASKED) bad += wrong("frame", "a component is left out") != 0;
    return bad != 0;
}

/* What a program sees of the processor's extended state: by cpuid, by xsave, in frames of signals. Prints it, and whether xsave kept
 * to the size that cpuid tells. `record --cpu` shows less than there is (tests/cli/cpu_level.sh).
 * cflags: -Wl,-z,lazy */
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static void on_signal(int sig, siginfo_t *info, void *context) {
    const uint32_t *sw = (const uint32_t *)((char *)((ucontext_t *)context)->uc_mcontext.fpregs + 464);
    if (sw[0] == 0x46505853) /* FP_XSTATE_MAGIC1: what follows counts */
        printf("frame: %u bytes, components %x\n", sw[4], sw[2]);
    else
        printf("frame: without extended state\n");
}

static void save(size_t size, uint64_t known) {
    uint8_t *area = aligned_alloc(64, size + 4096);
    memset(area, 0x5a, size + 4096);
    memset(area + 512, 0, 64);
    __asm__ volatile("xsave64 (%0)" : : "r"(area), "a"(-1), "d"(-1) : "memory");
    uint64_t components;
    memcpy(&components, area + 512, 8);
    size_t end = size + 4096;
    while (area[end - 1] == 0x5a) end--;
    printf("xsave: %s components, %s its size\n", components & ~known ? "UNKNOWN" : "known",
           end <= size ? "within" : "BEYOND");
}

int main(void) {
    unsigned a, b, c, d, lo = 0, hi;
    __cpuid(1, a, b, c, d);
    if (c >> 27 & 1) { /* OSXSAVE */
        __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
        __cpuid_count(13, 0, a, b, c, d);
        printf("cpuid: %u bytes, components %x, xgetbv %x\n", b, a, lo);
        save(b, (uint64_t)d << 32 | a);
    } else {
        printf("cpuid: no xsave\n");
    }
    printf("avx %d avx2 %d avx512f %d\n", !!__builtin_cpu_supports("avx"), !!__builtin_cpu_supports("avx2"),
           !!__builtin_cpu_supports("avx512f"));
    sigaction(SIGUSR1, &(struct sigaction){.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, NULL);
    raise(SIGUSR1);
    return 0;
}

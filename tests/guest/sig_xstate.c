/* What handlers do to the floating point and vector state in their frame, and what the kernel makes of it: changed, marked as absent, cut
 * off behind the legacy part, refused. And frames that do not fit on the alternate stack. Prints what comes back. */
#include <cpuid.h>

#include "guest.h"

#define MXCSR_MM 0x20000 /* some processors of AMD's */

enum { CHANGED, MASKED_OUT, NO_MAGIC, NO_STATE, NO_END, FEWER_FEATURES, MISALIGNED_SSE, RESERVED_MXCSR, COMPACTED, UNKNOWN_PART,
       RESERVED_HEADER, STAGES };
static const char *const name[] = {"changed", "masked out", "no magic", "no state", "no end", "fewer features", "misaligned SSE",
                                   "reserved mxcsr", "compacted", "unknown part", "reserved header"};
static int stage;
static bool has_avx;
static uint32_t mxcsr_mask;
static sigjmp_buf refused;

static void on_usr1(int signo, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    uint8_t *fp = (uint8_t *)uc->uc_mcontext.fpregs;
    uint32_t *sw = (uint32_t *)(fp + 464), *mxcsr = (uint32_t *)(fp + 24);
    uint64_t *header = (uint64_t *)(fp + 512);
    bool whole = sw[0] == 0x46505853;
    switch (stage) {
    case CHANGED:
        memset(fp + 160 + 16 * 2, 0x11, 16);
        *mxcsr = 0x7f80;
        *(uint16_t *)fp = 0x27f;
        break;
    case MASKED_OUT: if (whole) header[0] &= ~4ull; break;
    case NO_MAGIC: sw[0] = 0; break;
    case NO_STATE: uc->uc_mcontext.fpregs = NULL; break;
    case NO_END: if (whole) *(uint32_t *)(fp + sw[4]) = 0; break;
    case FEWER_FEATURES: if (whole) sw[2] &= ~4u; break;
    case MISALIGNED_SSE: *mxcsr |= mxcsr_mask & MXCSR_MM; break;
    case RESERVED_MXCSR: *mxcsr |= 0x100000; break;
    case COMPACTED: if (whole) header[1] = 1ull << 63; break;
    case UNKNOWN_PART: if (whole) header[0] |= 1ull << 40; break;
    case RESERVED_HEADER: if (whole) header[3] = 1; break;
    }
}

static void on_segv(int signo) { siglongjmp(refused, 1); }

static void go(void) {
    static uint8_t in[32] __attribute__((aligned(32))), out[32] __attribute__((aligned(32)));
    uint32_t mxcsr = 0x1fa0;
    uint16_t cw = 0x37f;
    long nr = SYS_tgkill, pid = getpid(), tid = gettid(), signo = SIGUSR1;
    for (int i = 0; i < 32; i++) in[i] = (uint8_t)(i + 1);
    if (has_avx)
        __asm__ volatile("fldcw %3; ldmxcsr %2; vmovdqa (%4), %%ymm2; syscall; vmovdqa %%ymm2, (%5); stmxcsr %2; fnstcw %3; vzeroupper"
                         : "+a"(nr), "+m"(out), "+m"(mxcsr), "+m"(cw) : "r"(in), "r"(out), "D"(pid), "S"(tid), "d"(signo)
                         : "rcx", "r11", "memory", "xmm2");
    else
        __asm__ volatile("fldcw %3; ldmxcsr %2; movdqa (%4), %%xmm2; syscall; movdqa %%xmm2, (%5); stmxcsr %2; fnstcw %3"
                         : "+a"(nr), "+m"(out), "+m"(mxcsr), "+m"(cw) : "r"(in), "r"(out), "D"(pid), "S"(tid), "d"(signo)
                         : "rcx", "r11", "memory", "xmm2");
    printf("%s: mxcsr %x cw %x low %02x%02x high %02x%02x\n", name[stage], mxcsr, cw, out[0], out[15], out[16], out[31]);
}

static void on_alternate(int signo) { write(1, "fits\n", 5); }

static void try_alternate(size_t size) {
    char *room = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = room + (1 << 19), .ss_size = size};
    if (sigaltstack(&stack, NULL) != 0) return; /* newer kernels refuse what is too small */
    signal(SIGSEGV, SIG_DFL);
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_alternate, .sa_flags = SA_ONSTACK}, NULL);
    raise(SIGUSR2);
}

int main(int argc, char **argv) {
    unsigned a, b, c, d;
    static uint8_t image[512] __attribute__((aligned(16)));
    setbuf(stdout, NULL);
    if (argc > 1) {
        for (char **size = argv + 1; *size; size++) try_alternate((size_t)atoi(*size));
        return 0;
    }
    __cpuid(1, a, b, c, d);
    has_avx = c & (1u << 27) && c & (1u << 28);
    __asm__ volatile("fxsave64 %0" : "=m"(image));
    memcpy(&mxcsr_mask, image + 28, 4);
    sigaction(SIGUSR1, &(struct sigaction){.sa_sigaction = on_usr1, .sa_flags = SA_SIGINFO}, NULL);
    signal(SIGSEGV, on_segv);
    for (stage = 0; stage < STAGES; stage++) {
        if (sigsetjmp(refused, 1))
            printf("%s: refused\n", name[stage]);
        else
            go();
    }
    return 0;
}

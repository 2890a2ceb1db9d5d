/* Far transfers and segment loads that the processor refuses, and those it does not: signal, address, trap and error number. */
#include "guest.h"

static sigjmp_buf out;

static void on(int sig, siginfo_t *si, void *ctx) {
    greg_t *g = ((ucontext_t *)ctx)->uc_mcontext.gregs;
    bool at_pc = si->si_addr && si->si_addr == (void *)g[REG_RIP];
    printf("signal %d code %d address %lx trap %lld error %llx flags %llx\n", sig, si->si_code,
           at_pc && sig == SIGILL ? 1 : (long)si->si_addr, g[REG_TRAPNO], g[REG_ERR], g[REG_EFL] & 0x14000);
    siglongjmp(out, 1);
}

#define TRY(name, ...)            \
    do {                          \
        printf("%s: ", name);     \
        if (!sigsetjmp(out, 1)) { \
            __VA_ARGS__;          \
            printf("no fault\n"); \
        }                         \
    } while (0)
#define JUMP(insn, at) __asm__ volatile(insn " *(%0)" ::"r"(at) : "memory")
#define RETURN(insn, sp) __asm__ volatile("mov %0, %%rsp\n " insn ::"r"(sp) : "memory")

static void iret(const char *name, uint64_t *f, uint64_t pc, uint64_t cs, uint64_t flags, uint64_t sp, uint64_t ss) {
    f[0] = pc, f[1] = cs, f[2] = flags, f[3] = sp, f[4] = ss;
    TRY(name, RETURN("iretq", f));
}

static void load_gs(const char *name, unsigned selector) {
    unsigned got = 0xffff;
    TRY(name, __asm__ volatile("mov %1, %%gs\n mov %%gs, %0" : "=r"(got) : "r"(selector)));
    printf("  selector %x\n", got);
    __asm__ volatile("mov %0, %%gs" ::"r"(0));
}

int main(void) {
    static char stack[65536];
    stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&ss, NULL);
    handle(SIGSEGV, on, SA_ONSTACK), handle(SIGBUS, on, SA_ONSTACK), handle(SIGILL, on, SA_ONSTACK);
    char *p = mmap((void *)0x70000000, 4096 * 3, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    char *none = p + 4096;
    uint64_t *f = (uint64_t *)(p + 4096 * 2 + 64);
    CHECK(p != MAP_FAILED && mprotect(none, 4096, PROT_NONE) == 0);

    TRY("ljmp, selector on a page that is not there", JUMP("ljmp", none - 4));
    TRY("lret, selector on a page that is not there", RETURN("lretq", none - 8));
    TRY("iret, flags on a page that is not there", RETURN("iretq", none - 16));
    static const uint16_t cs[] = {0x30, 0x2b, 0x10, 0, 0x77};
    for (size_t i = 0; i < sizeof cs / sizeof *cs; i++) {
        *(uint32_t *)p = 0x1234, *(uint16_t *)(p + 4) = cs[i];
        printf("%x ", cs[i]);
        TRY("ljmp", JUMP("ljmp", p));
        f[0] = 0x1234, f[1] = cs[i];
        if (cs[i]) TRY("lret", RETURN("lretq", f));
    }
    f[0] = 0x8000000000000000, f[1] = 0x33;
    TRY("lret, bad address", RETURN("lretq", f));
    iret("iret, no stack segment", f, 0x1234, 0x33, 0x202, 0x1000, 0);
    iret("iret, code as stack segment", f, 0x1234, 0x33, 0x202, 0x1000, 0x33);
    iret("iret, both bad", f, 0x1234, 0x77, 0x202, 0x1000, 0x1234);
    iret("iret, bad address", f, 0x8000000000000000, 0x33, 0x202, 0x1000, 0x2b);
    iret("iret, nothing there", f, 0x1234, 0x33, 0x202, 0x1000, 0x2b);
    *(uint32_t *)(p + 8) = 0x1234, *(uint16_t *)(p + 12) = 0x33;
    TRY("lcall, stack on a page that is not there",
        __asm__ volatile("mov %0, %%rsp\n lcall *(%1)" ::"r"(p + 8192), "r"(p + 8)
                         : "memory"));
    TRY("wrgsbase, bad address", __asm__ volatile("wrgsbase %0" ::"r"(0x8000000000000000)));
    load_gs("data", 0x2b), load_gs("code", 0x33), load_gs("null", 3), load_gs("kernel", 0x10), load_gs("local", 0x77);
    TRY("fs", __asm__ volatile("mov %0, %%fs" ::"r"(0x10)));

    uint64_t base = 1;
    __asm__ volatile("wrgsbase %1\n mov %2, %%gs\n rdgsbase %0" : "=&r"(base) : "r"(0x12345678ul), "r"(0x2b));
    printf("base of the data segment: %lx\n", base);
    __asm__ volatile("mov %1, %%gs\n rdgsbase %0" : "=r"(base) : "r"(0));
    printf("base of none: %lx\n", base);
    return finish();
}

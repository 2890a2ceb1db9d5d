/* A fault shows the handler every general register, the pc of the faulting instruction, flags, and vector registers. */
#include "guest.h"

extern char fault_here[], fault_done[];
static gregset_t seen;
static uint8_t seen_xmm[16][16];
static siginfo_t seen_info;

static void on_segv(int sig, siginfo_t *si, void *ctx) {
    (void)sig;
    ucontext_t *uc = ctx;
    memcpy(seen, uc->uc_mcontext.gregs, sizeof seen);
    memcpy(seen_xmm, uc->uc_mcontext.fpregs->_xmm, sizeof seen_xmm);
    seen_info = *si;
    uc->uc_mcontext.gregs[REG_RIP] = (greg_t)fault_done;
}

static void fault_with_known_registers(void) {
    __asm__ volatile("push %%rbp\n push %%rbx\n"
                     "mov %%rsp, saved_rsp(%%rip)\n"
                     "pcmpeqd %%xmm5, %%xmm5\n pxor %%xmm6, %%xmm6\n"
                     "mov $0x1111111111111111, %%rax\n mov $0x2222222222222222, %%rbx\n"
                     "mov $0x3333333333333333, %%rcx\n mov $0x4444444444444444, %%rdx\n"
                     "mov $0x5555555555555555, %%rsi\n mov $0x6666666666666666, %%rdi\n"
                     "mov $0x7777777777777777, %%rbp\n"
                     "mov $0x0888888888888888, %%r8\n mov $0x0999999999999999, %%r9\n"
                     "mov $0x0aaaaaaaaaaaaaaa, %%r10\n mov $0x0bbbbbbbbbbbbbbb, %%r11\n"
                     "mov $0x0ccccccccccccccc, %%r12\n mov $0x0ddddddddddddddd, %%r13\n"
                     "mov $0x0eeeeeeeeeeeeeee, %%r14\n mov $0x1000, %%r15d\n"
                     "stc\n"
                     ".globl fault_here\n.globl fault_done\n"
                     "fault_here: mov %%rax, (%%r15)\n"
                     "fault_done: pop %%rbx\n pop %%rbp\n"
                     ".pushsection .bss\nsaved_rsp: .skip 8\n.popsection\n" ::
                         : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                           "memory", "cc", "xmm5", "xmm6");
}
extern uint64_t saved_rsp;

int main(void) {
    handle(SIGSEGV, on_segv, 0);
    for (int i = 0; i < 3; i++) {
        memset(seen, 0, sizeof seen);
        fault_with_known_registers();
        static const int regs[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8,
                                   REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
        for (unsigned r = 0; r < sizeof regs / sizeof *regs; r++) printf("%llx ", (long long)seen[regs[r]]);
        puts("");
        CHECK(seen[REG_RIP] == (greg_t)fault_here);
        CHECK((uint64_t)seen[REG_RSP] == *(uint64_t *)&saved_rsp);
        CHECK(seen[REG_EFL] & 1);
        CHECK(seen_info.si_addr == (void *)0x1000 && seen_info.si_code == SEGV_MAPERR);
        printf("trap %lld error %lld cr2 %llx\n", (long long)seen[REG_TRAPNO], (long long)seen[REG_ERR],
               (long long)seen[REG_CR2]);
        CHECK(seen_xmm[5][0] == 0xff && seen_xmm[5][15] == 0xff && seen_xmm[6][0] == 0 && seen_xmm[6][15] == 0);
        CHECK((seen[REG_CSGSFS] & 0xffff) == 0x33);
    }
    return finish();
}

/* rcx behind indirect transfers, as single steps show it: also where the program is about to overwrite it. */
#include "guest.h"

#define RFLAGS_TF 0x100

static uint64_t seen[64];
static int n_seen;

static void on_trap(int signo, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    if (n_seen < 64) seen[n_seen++] = (uint64_t)uc->uc_mcontext.gregs[REG_RCX];
}

/* A return, an indirect call and an indirect jump, each to a place where rcx is written first. With flags as given on the way in. */
__attribute__((noinline)) static void go(uint64_t flags) {
    __asm__ volatile("push %0; popf\n"
                     "mov $0x1111, %%ecx; call 1f; mov $1, %%ecx\n"
                     "mov $0x2222, %%ecx; lea 2f(%%rip), %%rax; call *%%rax; mov $2, %%ecx\n"
                     "mov $0x3333, %%ecx; lea 3f(%%rip), %%rax; jmp *%%rax\n"
                     "1: mov $0x4444, %%ecx; ret\n"
                     "2: mov $0x5555, %%ecx; ret\n"
                     "3: mov $0x6666, %%ecx; pushf; andl $-0x101, (%%rsp); popf\n"
                     :
                     : "r"(flags)
                     : "rax", "rcx", "cc", "memory");
}

int main(void) {
    uint64_t flags;
    sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, NULL);
    __asm__ volatile("pushf; pop %0" : "=r"(flags));
    for (int i = 0; i < 3000; i++) go(flags);
    go(flags | RFLAGS_TF);
    for (int i = 0; i < n_seen; i++) printf("%lx\n", seen[i]);
    return 0;
}

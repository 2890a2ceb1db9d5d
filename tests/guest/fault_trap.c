/* SIGTRAP: int3 (pc after it), int1, and single-stepping oneself with the trap flag. */
#include "guest.h"

static uintptr_t pc;
static int code, steps;
extern char trap_after[], step_first[], step_last[];
static uintptr_t path[64];

static void on(int sig, siginfo_t *si, void *ctx) {
    (void)sig;
    pc = ((ucontext_t *)ctx)->uc_mcontext.gregs[REG_RIP], code = si->si_code;
}
static void step(int sig, siginfo_t *si, void *ctx) {
    (void)sig, (void)si;
    greg_t *g = ((ucontext_t *)ctx)->uc_mcontext.gregs;
    if (steps < 64) path[steps++] = g[REG_RIP];
    if (g[REG_RIP] == (greg_t)step_last) g[REG_EFL] &= ~0x100ll;
}

int main(void) {
    handle(SIGTRAP, on, 0);
    __asm__ volatile("int3\n .globl trap_after\n trap_after:");
    printf("int3: pc after it %d, code %d\n", pc == (uintptr_t)trap_after, code);
    __asm__ volatile(".byte 0xcd, 3\n 1: lea 1b(%%rip), %%rax\n mov %%rax, %0" : "=m"(*(uintptr_t *)path)::"rax");
    printf("int $3: pc after it %d\n", pc == path[0]);

    handle(SIGTRAP, step, 0);
    __asm__ volatile("pushfq\n orl $0x100, (%%rsp)\n popfq\n"
                     ".globl step_first\n step_first: nop\n xor %%eax, %%eax\n 1: inc %%eax\n cmp $3, %%eax\n jne 1b\n"
                     ".globl step_last\n step_last: nop\n" ::
                         : "rax", "cc", "memory");
    for (int i = 0; i < steps; i++) printf("%ld ", (long)(path[i] - (uintptr_t)step_first));
    printf("= %d steps\n", steps);
    pid_t pid = fork();
    if (!pid) {
        signal(SIGTRAP, SIG_DFL);
        __asm__ volatile("int3");
        _exit(0);
    }
    printf("default: %s\n", wait_text(pid));
    return finish();
}

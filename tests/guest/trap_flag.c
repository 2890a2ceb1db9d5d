/* A program that steps through itself with the trap flag: every way an instruction can end, and every way to set the flag. */
#include "guest.h"
#include <sys/syscall.h>

#define PATH 256
static uintptr_t path[PATH];
static long flags[PATH];
static int steps, codes, faults;
static uintptr_t fault_pc;
extern char step_begin[], step_end[], helper_code[], helper_end[];

static void on_step(int sig, siginfo_t *si, void *ctx) {
    (void)sig;
    greg_t *g = ((ucontext_t *)ctx)->uc_mcontext.gregs;
    if (steps < PATH) path[steps] = g[REG_RIP], flags[steps++] = g[REG_EFL] & 0x10100;
    codes |= 1 << (si->si_code == TRAP_BRKPT ? TRAP_TRACE : si->si_code); /* some hypervisors lose the reason, natively */
    if (si->si_addr != (void *)g[REG_RIP]) codes |= 1 << 20;
    if (g[REG_TRAPNO] != 1 || g[REG_ERR] != 0) codes |= 1 << 21;
}
static void on_fault(int sig, siginfo_t *si, void *ctx) {
    (void)sig, (void)si;
    greg_t *g = ((ucontext_t *)ctx)->uc_mcontext.gregs;
    faults++, fault_pc = g[REG_RIP];
    codes |= g[REG_EFL] & 0x100 ? 1 << 22 : 1 << 23;
    g[REG_RIP] += 2; /* over `mov (%rcx), %ecx` */
}

static void show(const char *name, char *begin) {
    printf("%s:", name);
    for (int i = 0; i < steps; i++) {
        if (path[i] >= (uintptr_t)helper_code && path[i] < (uintptr_t)helper_end)
            printf(" h%ld", (long)(path[i] - (uintptr_t)helper_code));
        else
            printf(" %ld", (long)(path[i] - (uintptr_t)begin));
        if (flags[i] != 0x100) printf("/%lx", flags[i]);
    }
    printf(" = %d steps, codes %x, faults %d\n", steps, codes, faults);
    steps = codes = faults = 0;
}

/* Runs `code` with the flag set; r8..r15 and the usual registers are free to use. */
#define STEP(name, code)                                                                                               \
    do {                                                                                                               \
        char *begin;                                                                                                   \
        memset(path, 0, sizeof path);                                                                                  \
        __asm__ volatile("lea 1f(%%rip), %0\n sub $128, %%rsp\n pushfq\n orl $0x100, (%%rsp)\n popfq\n1: nop\n" code   \
                         "\n pushfq\n andl $~0x100, (%%rsp)\n popfq\n nop\n add $128, %%rsp\n"                         \
                         : "=&b"(begin)::"rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory"); \
        show(name, begin);                                                                                             \
    } while (0)

__asm__(".globl helper_code, helper_end\nhelper_code: nop\n inc %eax\n ret\nhelper_end: nop\n");

static volatile char from[64], to[64];
static volatile int signals;
static void on_usr(int sig, siginfo_t *si, void *ctx) {
    (void)sig, (void)si;
    signals++;
    codes |= ((ucontext_t *)ctx)->uc_mcontext.gregs[REG_EFL] & 0x100 ? 1 << 24 : 1 << 25;
}

int main(void) {
    handle(SIGTRAP, on_step, 0);
    handle(SIGSEGV, on_fault, 0);
    handle(SIGUSR1, on_usr, 0);
    STEP("plain", "xor %%eax, %%eax\n inc %%eax\n");
    STEP("loop", "mov $3, %%ecx\n2: dec %%ecx\n jnz 2b\n mov $3, %%ecx\n2: loop 2b\n");
    STEP("call", "call helper_code\n lea helper_code(%%rip), %%rax\n call *%%rax\n");
    STEP("jmp", "lea 3f(%%rip), %%rax\n jmp *%%rax\n nop\n3: jmp 4f\n nop\n4: push %%rax\n lea 5f(%%rip), %%rax\n xchg "
                "(%%rsp), %%rax\n ret\n5:");
    STEP("pushf", "pushfq\n pop %%rax\n and $0x100, %%eax\n mov %%eax, %%r8d\n");
    STEP("popf", "pushfq\n popfq\n nop\n");
    STEP("syscall",
         "mov $39, %%eax\n syscall\n nop\n mov $39, %%eax\n syscall\n mov %%r11d, %%r9d\n and $0x100, %%r9d\n");
    STEP("int80", "mov $20, %%eax\n int $0x80\n nop\n");
    STEP("rep",
         "lea from(%%rip), %%rsi\n lea to(%%rip), %%rdi\n mov $5, %%ecx\n rep movsb\n xor %%ecx, %%ecx\n rep movsb\n");
    STEP("stack segment", "mov %%ss, %%eax\n mov %%eax, %%ss\n nop\n nop\n");
    STEP("cpuid", "push %%rbx\n xor %%eax, %%eax\n cpuid\n pop %%rbx\n rdtsc\n xgetbv_skip: nop\n");
    STEP("rip", "lea from(%%rip), %%rax\n mov from(%%rip), %%al\n incl from(%%rip)\n");
    STEP("fault", "xor %%ecx, %%ecx\n mov (%%rcx), %%ecx\n nop\n");
    STEP("iret", "mov %%rsp, %%rdx\n mov %%ss, %%eax\n push %%rax\n push %%rdx\n pushfq\n mov %%cs, %%eax\n push "
                 "%%rax\n lea 6f(%%rip), %%rax\n push %%rax\n iretq\n6: nop\n");
    STEP("int3", "nop\n int3\n nop\n");
    STEP("kill", "mov $39, %%eax\n syscall\n mov %%eax, %%edi\n mov $10, %%esi\n mov $62, %%eax\n syscall\n nop\n");
    printf("signals %d, flag kept in their frames %d\n", signals, signals == 1);
    return finish();
}

/* Runs the hand-written tests (FLOW in flow_*.S, and those in C of smc.c) and prints, per test, one line per result:
 * registers and flags at the end, OUT slots that were set, faults taken with their registers, and hashes of the memory
 * the tests work on. Natively and translated, the output must be the same.
 *
 *   flow            all        flow -l         names        flow NAME...    only these
 *   flow -d ...     without what is left below the stack pointer at the end */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "flow.h"
#include "smc.h"

struct flow_test {
    const char *name;
    void (*run)(void);
};
extern struct flow_test __start_flow_tests[], __stop_flow_tests[];
extern struct flow_regs flow_regs;
extern uint64_t flow_out[FLOW_OUTS];
extern void *flow_resume;
extern int flow_repair, flow_avx;
extern const char flow_save[], __executable_start[], end[];
void flow_call(void (*test)(void));

#define FAULTS 8
static struct flow_fault {
    int signo, code;
    uint64_t addr, rip, trapno, err, rflags;
    uint64_t gpr[16];
} faults[FAULTS];
static int nfaults;
static bool ignore_dead;
static volatile bool running; /* a FLOW test */

static const char *const gpr_names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                          "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

static void on_fault(int signo, siginfo_t *info, void *context)
{
    static const uint8_t order[16] = {8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4}; /* ucontext's */
    ucontext_t *uc = context;
    greg_t *g = uc->uc_mcontext.gregs;
    if (!running || nfaults == FAULTS)
        _exit(3);
    struct flow_fault *f = &faults[nfaults++];
    f->signo = signo;
    f->code = info->si_code;
    f->addr = (uint64_t)info->si_addr;
    f->rip = (uint64_t)g[REG_RIP];
    f->trapno = (uint64_t)g[REG_TRAPNO];
    f->err = (uint64_t)g[REG_ERR];
    f->rflags = (uint64_t)g[REG_EFL];
    for (int i = 0; i < 16; i++)
        f->gpr[order[i]] = (uint64_t)g[i];
    if (flow_repair && signo == SIGSEGV && (f->addr & ~0xfffull) == FGUARD) {
        mprotect((void *)(uintptr_t)FGUARD, 4096, PROT_READ | PROT_WRITE);
        return; /* and again */
    }
    g[REG_RIP] = (greg_t)(uintptr_t)(flow_resume ? flow_resume : (const void *)flow_save);
}

/* Addresses within the program become offsets. */
static uint64_t without_base(uint64_t v)
{
    uint64_t start = (uint64_t)__executable_start;
    return v >= start && v < (uint64_t)end ? v - start + 0xe1f0000000000000 : v;
}

static uint64_t hash_memory(uintptr_t at, size_t size)
{
    uint64_t h = 1;
    for (size_t i = 0; i < size; i += 8) {
        h = (h ^ without_base(*(uint64_t *)(at + i))) * 0x9e3779b97f4a7c15;
        h ^= h >> 29;
    }
    return h;
}

static void print_regs(const char *test, const char *what, const uint64_t *gpr)
{
    for (int i = 0; i < 16; i++)
        printf("%s%s%s%s=%lx", i % 8 ? " " : test, i % 8 ? "" : what, i % 8 ? "" : " ", gpr_names[i], without_base(gpr[i])),
            printf("%s", i % 8 == 7 ? "\n" : "");
}

#define UNTOUCHED 0x5c

/* What the test left around its first stack pointer, dead slots below it included: nobody else writes there. */
static void print_stack(const char *test)
{
    uint64_t untouched;
    int n = 0;
    memset(&untouched, UNTOUCHED, sizeof untouched);
    for (int i = -128; i < 128; i++) {
        uint64_t v = *(uint64_t *)(uintptr_t)(FSTACK_TOP + 8 * i);
        bool dead = (uint64_t)(FSTACK_TOP + 8 * i) < flow_regs.gpr[4];
        if (v != untouched && !(dead && ignore_dead) && n++ < 24)
            printf("%s%s %+d:%lx", n % 8 == 1 ? test : "", n % 8 == 1 ? " stack" : "", 8 * i, without_base(v)),
                printf("%s", n % 8 ? "" : "\n");
    }
    if (n > 24 && !ignore_dead)
        printf("%s stack %d more, all: %lx\n", test, n - 24, hash_memory(FSTACK_TOP - 0x400, 0x800));
    else if (n % 8)
        printf("\n");
}

static void run_flow(const struct flow_test *t)
{
    memset((void *)(uintptr_t)(FSTACK_TOP - 0x2000), UNTOUCHED, 0x4000);
    memset((void *)(uintptr_t)FDATA, 0, FDATA_SIZE);
    mprotect((void *)(uintptr_t)FGUARD, 4096, PROT_READ | PROT_WRITE);
    memset((void *)(uintptr_t)(FGUARD - 4096), 0, 3 * 4096);
    memset(flow_out, 0, sizeof flow_out);
    memset(&flow_regs, 0, sizeof flow_regs);
    flow_resume = NULL;
    flow_repair = nfaults = 0;
    printf("%s\n", t->name);
    fflush(stdout);

    running = true;
    flow_call(t->run);
    running = false;

    for (int i = 0; i < nfaults; i++) {
        struct flow_fault *f = &faults[i];
        printf("%s fault signal=%d code=%d addr=%lx pc=%lx trap=%ld error=%lx rflags=%lx\n", t->name, f->signo, f->code,
               without_base(f->addr), without_base(f->rip), f->trapno, f->err, f->rflags);
        print_regs(t->name, " fault", f->gpr);
    }
    print_regs(t->name, "", flow_regs.gpr);
    print_stack(t->name);
    printf("%s rflags=%lx", t->name, flow_regs.rflags);
    for (int i = 0; i < FLOW_OUTS; i++)
        if (flow_out[i])
            printf(" out%d=%lx", i, without_base(flow_out[i]));
    mprotect((void *)(uintptr_t)FGUARD, 4096, PROT_READ | PROT_WRITE);
    printf(" data=%lx guard=%lx\n", hash_memory(FDATA, FDATA_SIZE), hash_memory(FGUARD - 4096, 3 * 4096));
    fflush(stdout);
}

static void map_at(uintptr_t at, size_t size, int prot)
{
    if (mmap((void *)at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
        perror("flow: fixed memory"), exit(2);
}

static bool wanted(const char *name, char **names)
{
    if (!*names)
        return true;
    for (; *names; names++)
        if (!strcmp(name, *names))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    static uint8_t altstack[1 << 17];
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t ss = {.ss_sp = altstack, .ss_size = sizeof altstack};
    if (argc > 1 && !strcmp(argv[1], "-d"))
        ignore_dead = true, argc--, argv++;
    bool list = argc > 1 && !strcmp(argv[1], "-l");

    flow_avx = !!__builtin_cpu_supports("avx");
    map_at(FSTACK, FSTACK_SIZE, PROT_READ | PROT_WRITE);
    map_at(FDATA, FDATA_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
    map_at(FGUARD - 4096, 3 * 4096, PROT_READ | PROT_WRITE);
    sigaltstack(&ss, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &sa, NULL);

    for (struct flow_test *t = __start_flow_tests; t < __stop_flow_tests; t++)
        if (list)
            puts(t->name);
        else if (wanted(t->name, argv + 1))
            run_flow(t);
    for (const struct smc_test *t = smc_tests; t->name; t++) {
        if (list) {
            puts(t->name);
        } else if (wanted(t->name, argv + 1)) {
            printf("%s\n", t->name);
            fflush(stdout);
            smc_current = t->name;
            printf("%s %lx\n", t->name, t->run());
            fflush(stdout);
        }
    }
    return fflush(stdout) || ferror(stdout) ? 4 : 0;
}

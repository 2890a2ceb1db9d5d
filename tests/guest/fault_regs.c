/* Exact state at faults of many instruction kinds: push, call, rmw, string operations half done, scatter of operands.
 * Each row: code that faults at label 1, continues at 2; the handler notes rip, rsp movement, rcx, rsi, rdi, flags. */
#include "guest.h"

static char *edge; /* readable up to here, unmapped after */
static struct {
    greg_t rip, rsp, rax, rcx, rsi, rdi, efl, err;
    uintptr_t addr;
} got;
uintptr_t resume_at, fault_at, at_rsp, keep_rbp, keep_rbx;

/* Distances of more than a page are only "far": they would print an address. */
static const char *near(long d) {
    static char text[4][16];
    static int i;
    char *t = text[i++ & 3];
    snprintf(t, 16, d > -4096 && d < 4096 ? "%ld" : "far", d);
    return t;
}

static void on(int sig, siginfo_t *si, void *ctx) {
    (void)sig;
    greg_t *g = ((ucontext_t *)ctx)->uc_mcontext.gregs;
    got.rip = g[REG_RIP], got.rsp = g[REG_RSP], got.rax = g[REG_RAX], got.rcx = g[REG_RCX], got.rsi = g[REG_RSI];
    got.rdi = g[REG_RDI], got.efl = g[REG_EFL], got.err = g[REG_ERR], got.addr = (uintptr_t)si->si_addr;
    g[REG_RIP] = resume_at;
}

#define CASE(name, code)                                                                                         \
    do {                                                                                                         \
        char *s = edge - 100;                                                                                    \
        memset(&got, 0, sizeof got);                                                                             \
        __asm__ volatile("lea -256(%%rsp), %%rsp\n mov %%rsp, at_rsp(%%rip)\n mov %%rbp, keep_rbp(%%rip)\n"      \
                         "mov %%rbx, keep_rbx(%%rip)\n lea 1f(%%rip), %%rax\n mov %%rax, fault_at(%%rip)\n"      \
                         "lea 2f(%%rip), %%rax\n mov %%rax, resume_at(%%rip)\n"                                  \
                         "mov %%rdi, %%rsi\n mov $300, %%ecx\n mov $5, %%eax\n" code                             \
                         "\n 2: cld\n mov keep_rbx(%%rip), %%rbx\n mov keep_rbp(%%rip), %%rbp\n"                 \
                         "mov at_rsp(%%rip), %%rsp\n lea 256(%%rsp), %%rsp"                                      \
                         : "+D"(s)::"rax", "rcx", "rsi", "memory", "cc", "xmm0", "r11");                         \
        s = edge - 100;                                                                                          \
        printf("%-12s at %d, rsp %s, rax %lld, rcx %lld, rsi %s, rdi %s, cf %lld, err %lld, addr %s\n", name,    \
               (uintptr_t)got.rip == fault_at, near(got.rsp - at_rsp), (long long)got.rax, (long long)got.rcx,   \
               near(got.rsi - (greg_t)s), near(got.rdi - (greg_t)s), (long long)got.efl & 1, (long long)got.err, \
               near(got.addr < 4096 ? got.addr : got.addr - (uintptr_t)edge));                                   \
    } while (0)

int main(void) {
    edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    edge += 4096;
    munmap(edge, 4096);
    memset(edge - 4096, 1, 4096);
    static char alt[65536];
    stack_t ss = {.ss_sp = alt, .ss_size = sizeof alt};
    sigaltstack(&ss, NULL);
    handle(SIGSEGV, on, SA_ONSTACK);

    CASE("load", "stc\n 1: mov 100(%%rdi), %%r11");
    CASE("store", "clc\n 1: movl $3, 100(%%rdi)");
    CASE("straddle", "1: mov %%rcx, 97(%%rdi)");
    CASE("rmw", "stc\n 1: addl $3, 100(%%rdi)");
    CASE("lock", "1: lock xaddl %%eax, 100(%%rdi)");
    CASE("cmpxchg", "1: lock cmpxchgq %%rcx, 100(%%rdi)");
    CASE("sse", "1: movaps 16(%%rdi), %%xmm0"); /* misaligned: general protection */
    CASE("push mem", "1: pushq 100(%%rdi)");
    CASE("pop mem", "push %%rax\n 1: popq 100(%%rdi)");
    CASE("call mem", "1: call *100(%%rdi)");
    CASE("jmp mem", "1: jmp *100(%%rdi)");
    CASE("push bad", "xor %%esp, %%esp\n lea 0x800(%%rsp), %%rsp\n 1: push %%rax");
    CASE("call bad", "mov $0x800, %%esp\n 1: call 2f");
    CASE("ret bad", "mov $0x800, %%esp\n 1: ret");
    CASE("leave bad", "push %%rbp\n mov $0x800, %%ebp\n 1: leave\n jmp 2f");
    CASE("stosb", "1: rep stosb");
    CASE("stosb down", "lea 130(%%rdi), %%rdi\n std\n 1: rep stosb");
    CASE("movsb", "lea -400(%%rsi), %%rsi\n 1: rep movsb");
    CASE("movsq", "lea -400(%%rsi), %%rsi\n 1: rep movsq");
    CASE("lodsb", "1: rep lodsb");
    CASE("scasb", "mov $1, %%al\n 1: repe scasb");
    CASE("cmpsb", "lea -50(%%rsi), %%rsi\n 1: repe cmpsb");
    CASE("xlat", "push %%rbx\n lea 95(%%rdi), %%rbx\n 1: xlat");
    CASE("bt mem", "mov $8000, %%eax\n 1: bts %%eax, (%%rdi)");
    CASE("null", "xor %%edi, %%edi\n 1: mov 16(%%rdi), %%rax");
    CASE("hlt", "1: hlt");
    CASE("in", "1: in $0x80, %%al");
    CASE("cli", "1: cli");
    return finish();
}

/* Debug registers of a tracee that watch for accesses of either kind: loads in all their shapes, and stores. */
#include "guest.h"
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

static volatile long watched[4] __attribute__((aligned(32)));
static volatile int step;
static long other[4];

#define AT(n)   \
    step = (n); \
    __asm__ volatile("" ::: "memory")

static volatile int over;

static void *writer(void *arg) {
    while (!over) watched[0]++;
    return arg;
}

/* What another thread does meanwhile, who is not traced, is of no interest. */
static void save_beside(void) {
    static char area[512] __attribute__((aligned(64)));
    pthread_t t;
    CHECK(pthread_create(&t, NULL, writer, NULL) == 0);
    for (int i = 0; i < 300; i++) __asm__ volatile("fxsave64 %0" : "=m"(area));
    over = 1;
    CHECK(pthread_join(t, NULL) == 0);
}

static int tracee(void) {
    long v = 0;
    const void *from;
    void *to;
    CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
    raise(SIGSTOP);
    AT(1);
    v = watched[0];
    AT(2);
    watched[0] = 3;
    AT(3);
    watched[0] += 1;
    AT(4);
    v += watched[1]; /* beside it */
    AT(5);
    __asm__ volatile("movb 7+%1, %b0" : "+r"(v) : "m"(watched[0]));
    AT(6);
    __asm__ volatile("pushq %0; lea 8(%%rsp), %%rsp" : : "m"(watched[0]) : "memory");
    AT(7);
    __asm__ volatile("mov %%rsp, %%r12; mov %0, %%rsp; pop %%rax; mov %%r12, %%rsp" : : "r"(watched) : "rax", "r12");
    AT(8);
    from = (void *)watched;
    __asm__ volatile("lodsq" : "+S"(from) : : "rax", "memory");
    AT(9);
    from = (void *)watched, to = other;
    __asm__ volatile("movsq" : "+S"(from), "+D"(to) : : "memory");
    AT(10);
    to = (void *)watched;
    __asm__ volatile("scasq" : "+D"(to) : "a"(0) : "cc", "memory");
    AT(11);
    from = other, to = (void *)watched;
    __asm__ volatile("cmpsb" : "+S"(from), "+D"(to) : : "cc", "memory");
    AT(12);
    __asm__ volatile("movups %0, %%xmm0" : : "m"(watched[0]) : "xmm0");
    AT(13);
    __asm__ volatile("mov $3, %%eax; xlatb" : : "b"(watched) : "rax", "memory");
    AT(14);
    __asm__ volatile("lea 1(%0), %%rax" : : "r"(watched) : "rax"); /* touches nothing */
    if (__builtin_cpu_supports("avx")) {
        AT(15);
        __asm__ volatile("vmovups -32(%0), %%ymm0" : : "r"(watched + 4) : "xmm0");
        AT(16);
        __asm__ volatile("mov %0, %%r13; vmovups (%%r13), %%xmm9; vzeroupper" : : "r"(watched) : "r13", "xmm0", "xmm9");
    }
    AT(17);
    __asm__ volatile("fldl %0; fstp %%st(0)" : : "m"(watched[0]));
    AT(18);
    __asm__ volatile("cmpq $5, %0" : : "m"(watched[0]) : "cc");
    AT(19);
    save_beside();
    AT(20);
    return failures + (v == -1);
}

#define DEBUGREG(i) (void *)offsetof(struct user, u_debugreg[i])

int main(void) {
    pid_t pid = fork();
    if (!pid) _exit(tracee());
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(ptrace(PTRACE_POKEUSER, pid, DEBUGREG(0), watched) == 0);
    CHECK(ptrace(PTRACE_POKEUSER, pid, DEBUGREG(7), 1 | 0xau << 16) == -1 && errno == EINVAL); /* input and output */
    CHECK(ptrace(PTRACE_POKEUSER, pid, DEBUGREG(7), 1 | 0xbu << 16) == 0);
    for (;;) {
        CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid);
        if (!WIFSTOPPED(status)) break;
        printf("step %d: %s, dr6 %lx\n", (int)ptrace(PTRACE_PEEKDATA, pid, (void *)&step, 0), status_text(status),
               ptrace(PTRACE_PEEKUSER, pid, DEBUGREG(6), 0) & 15);
        CHECK(ptrace(PTRACE_POKEUSER, pid, DEBUGREG(6), 0) == 0);
    }
    printf("end: %s\n", status_text(status));
    return finish();
}

/* A handler changes what it returns to: registers, flags, pc, vector registers; asynchronous and synchronous. */
#include "guest.h"

extern char mod_resume[];

static void skip_ud2(int sig, siginfo_t *si, void *ctx) {
    (void)sig, (void)si;
    ucontext_t *uc = ctx;
    uc->uc_mcontext.gregs[REG_RIP] += 2;
    uc->uc_mcontext.gregs[REG_RAX] = 42;
    uc->uc_mcontext.gregs[REG_R12] ^= 0xff;
    uc->uc_mcontext.gregs[REG_EFL] |= 1;
    uc->uc_mcontext.fpregs->_xmm[3].element[0] = 0x01020304;
    uc->uc_mcontext.fpregs->_xmm[3].element[3] = 0x05060708;
}

static void jump_away(int sig, siginfo_t *si, void *ctx) {
    (void)sig, (void)si;
    ((ucontext_t *)ctx)->uc_mcontext.gregs[REG_RIP] = (greg_t)mod_resume;
}

static volatile int escape;
static void end_loop(int sig, siginfo_t *si, void *ctx) {
    (void)sig, (void)si;
    ucontext_t *uc = ctx;
    uc->uc_mcontext.gregs[REG_RBX] = 0; /* the loop spins while rbx is 1 */
    escape++;
}

int main(void) {
    handle(SIGILL, skip_ud2, 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t rax = 0, r12 = 0x1234;
        uint8_t carry;
        uint32_t v[4];
        __asm__ volatile("mov %4, %%r12\n clc\n pxor %%xmm3, %%xmm3\n ud2\n setc %2\n mov %%r12, %1\n movdqu %%xmm3, %3"
                         : "=&a"(rax), "=&r"(r12), "=&q"(carry), "=m"(v)
                         : "r"(r12)
                         : "r12", "xmm3", "cc");
        if (i == 0) printf("rax %lu r12 %lx carry %d xmm3 %x %x %x %x\n", rax, r12, carry, v[0], v[1], v[2], v[3]);
        CHECK(rax == 42 && r12 == (0x1234 ^ 0xff) && carry == 1 && v[0] == 0x01020304);
    }

    handle(SIGUSR1, jump_away, 0);
    int at = 0;
    __asm__ volatile("syscall\n" /* kill(getpid(), SIGUSR1) */
                     "movl $1, %0\n jmp 1f\n"
                     ".globl mod_resume\nmod_resume: movl $2, %0\n1:"
                     : "+r"(at)
                     : "a"(SYS_kill), "D"(getpid()), "S"(SIGUSR1)
                     : "rcx", "r11", "memory");
    printf("resumed at %d\n", at);

    handle(SIGALRM, end_loop, 0);
    for (int i = 0; i < 5; i++) {
        struct itimerval t = {.it_value = {0, 10000}};
        setitimer(ITIMER_REAL, &t, NULL);
        __asm__ volatile("mov $1, %%rbx\n1: test %%rbx, %%rbx\n jnz 1b" ::: "rbx", "cc");
    }
    printf("escaped %d times\n", escape);
    return finish();
}

/* Flags that no arithmetic changes, ID and NT: each thread has its own, handlers see them, and they go when they are cleared. */
#include "guest.h"
#include <pthread.h>
#include <sys/syscall.h>

#define ODD 0x204000ul

static unsigned long get(void) {
    unsigned long f;
    __asm__ volatile("pushfq; popq %0" : "=r"(f));
    return f & ODD;
}
static void put(unsigned long odd) {
    unsigned long f;
    __asm__ volatile("pushfq; popq %0" : "=r"(f));
    f = (f & ~ODD) | odd;
    __asm__ volatile("pushq %0; popfq" : : "r"(f) : "cc", "memory");
}
/* What a system call leaves in r11. */
static unsigned long at_call(void) {
    unsigned long nr = SYS_getppid, f;
    __asm__ volatile("syscall; mov %%r11, %1" : "+a"(nr), "=r"(f) : : "rcx", "r11", "memory");
    return f & ODD;
}

static volatile int turn;
static void pass(int to) {
    __atomic_store_n(&turn, to, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &turn, 1, 2, 0, 0, 0);
}
static void await(int me) {
    int now;
    while ((now = __atomic_load_n(&turn, __ATOMIC_SEQ_CST)) != me) syscall(SYS_futex, &turn, 0, now, 0, 0, 0);
}

static unsigned long in_handler, in_frame;
static void on_signal(int sig, siginfo_t *si, void *ctx) {
    (void)si;
    greg_t *g = ((ucontext_t *)ctx)->uc_mcontext.gregs;
    in_handler = get(), in_frame = (unsigned long)g[REG_EFL] & ODD;
    if (sig == SIGSEGV) g[REG_RIP] += 2; /* over `mov (%rcx), %ecx` */
    pass(1), await(0);                   /* another thread runs while this one is in its handler */
}

static void *other(void *arg) {
    (void)arg;
    for (int i = 0; i < 6; i++) {
        await(1);
        printf("other %d: %lx %lx\n", i, get(), at_call());
        pass(0);
    }
    return NULL;
}

int main(void) {
    printf("at first %lx\n", get());
    for (unsigned long odd = ODD, i = 0; i < 4; i++, odd = i == 1 ? 0x200000 : i == 2 ? 0x4000 : 0) {
        put(odd);
        unsigned long set = get(), call = at_call();
        put(0);
        printf("%lx: %lx %lx, cleared %lx %lx\n", odd, set, call, get(), at_call());
    }
    struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &sa, NULL);
    sigaction(SIGSEGV, &sa, NULL);
    pthread_t t;
    pthread_create(&t, NULL, other, NULL);
    for (int i = 0; i < 2; i++) {
        put(i ? 0 : ODD);
        pass(1), await(0);
        unsigned long mine = get();
        raise(SIGUSR1);
        unsigned long after = get();
        printf("%lx: handler %lx, frame %lx, after %lx\n", mine, in_handler, in_frame, after);
        __asm__ volatile("xor %%ecx, %%ecx; mov (%%rcx), %%ecx" : : : "rcx", "cc", "memory");
        after = get();
        printf("%lx: handler %lx, frame %lx, after %lx\n", mine, in_handler, in_frame, after);
    }
    pthread_join(t, NULL);
    return 0;
}

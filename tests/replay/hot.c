/* A page that is written all the time, and bytes on it that are written now and then, by every kind of store there is. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    volatile long busy[256];
    _Alignas(64) volatile unsigned char watched[64]; /* what the test watches: 8 bytes from 8 on */
    _Alignas(64) unsigned char behind[1024];
} page __attribute__((aligned(4096)));
static unsigned char source[64];
static _Thread_local volatile long local; /* also watched */
static int n;

static void warm(void) {
    for (int i = 0; i < 3000; i++) page.busy[i & 255] = i;
}

/* A new value for what is stored next. */
static void next(void) {
    warm();
    memset(source, ++n, sizeof source);
}

static void on_signal(int sig) {}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 0;
    uint64_t value;
    void *at = (void *)(page.watched + 8);
    next(); /* a plain store, and a narrow one into the middle */
    memcpy(&value, source, 8);
    *(volatile uint64_t *)at = value;
    next();
    page.watched[11] = source[0];
    next(); /* one that begins before */
    __asm__ volatile("movups (%0), %%xmm0; movups %%xmm0, -4(%1)" ::"r"(source), "r"(at) : "xmm0", "memory");
    next();
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vmovups (%0), %%ymm0; vmovups %%ymm0, -8(%1); vzeroupper" ::"r"(source), "r"(at)
                         : "xmm0", "memory");
    else
        memcpy(at, source, 8);
    next(); /* its displacement is in units of 32 bytes */
    if (__builtin_cpu_supports("avx512vl"))
        __asm__ volatile("vmovdqu64 (%0), %%ymm16; vmovdqu64 %%ymm16, 64(%1)" ::"r"(source), "r"((char *)at - 72)
                         : "memory");
    else
        memcpy(at, source, 8);
    next(); /* string instructions, forwards and backwards */
    __asm__ volatile("mov %0, %%rsi; mov %1, %%rdi; mov $5, %%ecx; rep movsq" ::"r"(source), "r"(page.watched)
                     : "rsi", "rdi", "rcx", "memory");
    next();
    __asm__ volatile("mov %0, %%rax; mov %1, %%rdi; mov $6, %%ecx; std; rep stosb; cld" ::"r"((uint64_t)n),
                     "r"(page.watched + 13)
                     : "rax", "rdi", "rcx", "memory");
    next();
    __asm__ volatile("mov %0, %%rsi; mov %1, %%rdi; movsl" ::"r"(source), "r"(at) : "rsi", "rdi", "memory");
    next(); /* read and write */
    __asm__ volatile("lock xaddq %1, (%0)" ::"r"(at), "r"(1l) : "memory");
    next();
    __asm__ volatile("mov (%0), %%rax; lock cmpxchgq %1, (%0)" ::"r"(at), "r"((long)n) : "rax", "memory");
    next();
    __asm__ volatile("btcq %1, (%0)" ::"r"(page.watched), "r"(70l) : "memory");
    next();
    __asm__ volatile("incb 3(%0)" ::"r"(at) : "memory");
    next(); /* the stack, and what a call leaves there */
    __asm__ volatile("mov %%rsp, %%rbx; lea 8(%0), %%rsp; push %1; mov %%rbx, %%rsp" ::"r"(at), "r"((long)n)
                     : "rbx", "memory");
    next();
    __asm__ volatile("mov %%rsp, %%rbx; lea 8(%0), %%rsp; call 1f; 1: mov %%rbx, %%rsp" ::"r"(at) : "rbx", "memory");
    next();
    __asm__ volatile("mov %%rsp, %%rbx; mov %1, %%rsp; pop (%0); mov %%rbx, %%rsp" ::"r"(at), "r"(source)
                     : "rbx", "memory");
    next(); /* where the length is not in the instruction */
    __asm__ volatile(
        "movdqu (%0), %%xmm0; pcmpeqb %%xmm1, %%xmm1; mov %1, %%rdi; maskmovdqu %%xmm1, %%xmm0" ::"r"(source), "r"(at)
        : "rdi", "xmm0", "xmm1", "memory");
    next();
    __asm__ volatile("fxsave (%0)" ::"r"((uintptr_t)page.watched) : "memory");
    next(); /* the kernel */
    int ends[2];
    if (pipe(ends) || write(ends[1], source, 8) != 8 || read(ends[0], at, 8) != 8) return 1;
    for (long i = 0; i < rounds; i++) page.busy[i & 255] = i;
    for (int i = 0; i < 3; i++) { /* the same again, and a variable relative to fs */
        next();
        local = n;
    }
    *(volatile uint64_t *)at = *(volatile uint64_t *)at;
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    printf("%d %p\n", n, (void *)&local);
    return 0;
}

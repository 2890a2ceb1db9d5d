#include "sphere/apart.h"

#include <linux/sched.h>

#include "inproc/sys.h"
#include "sphere/signals.h"

struct job {
    void (*fn)(void *);
    void *arg;
    const int *keep;
    int n;
};

static bool kept(const struct job *j, uint32_t fd) {
    for (int i = 0; i < j->n; i++)
        if (j->keep[i] == (int)fd) return true;
    return false;
}

static void run(struct job *j) {
    uint64_t limit[2] = {0, 0};
    SYS(prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, limit);
    for (uint32_t fd = 0; fd < MIN(limit[0], 64); fd++)
        if (!kept(j, fd)) SYS(close, fd);
    j->fn(j->arg);
}

/* On the caller's stack, below what it uses: it stands still (CLONE_VFORK) until the thread has ended. */
long apart_call(void (*fn)(void *), void *arg, const int *keep, int n) {
    struct job job = {fn, arg, keep, n};
    uint64_t all = ~SIGNALS_SYNC, mask;
    SYS(rt_sigprocmask, 0, &all, &mask, 8);
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    long ret;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "sub $256, %%rsp\n\t"
                     "and $-16, %%rsp\n\t"
                     "mov %[job], %%rdi\n\t"
                     "call *%[run]\n\t"
                     "xor %%edi, %%edi\n\t"
                     "mov %[exit], %%eax\n\t"
                     "syscall\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(ret)
                     : "0"(__NR_clone), "D"(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_VFORK | CLONE_FS), "S"(0l),
                       "d"(0l), "r"(r10), "r"(r8), [run] "b"(run), [job] "r"(&job), [exit] "i"(__NR_exit)
                     : "rcx", "r11", "memory");
    SYS(rt_sigprocmask, 2, &mask, 0, 8);
    return ret < 0 ? ret : 0;
}

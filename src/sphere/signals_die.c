/* The end of a process by a signal. */
#include <linux/mman.h>

#include "engine/cache.h"
#include "engine/engine.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/sys.h"
#include "sphere/mode.h"
#include "sphere/sigframe.h"
#include "sphere/signals.h"
#include "sphere/traced.h"

#define SIGILL_ 4
#define SIGTRAP_ 5
#define SIGFPE_ 8
#define SIGSEGV_ 11

static void kernel_default(int signo) {
    struct ksigaction dfl = {0};
    SYS(rt_sigaction, signo, &dfl, 0, 8);
}

/* With the default action in force. */
static void die_by_fault(int signo) {
    switch (signo) {
    case SIGILL_: __asm__ volatile("ud2"); break;
    case SIGTRAP_: __asm__ volatile("int3"); break;
    case SIGFPE_: __asm__ volatile("xor %%ecx, %%ecx; idiv %%ecx" ::: "rax", "rcx", "rdx", "cc"); break;
    case SIGSEGV_: __asm__ volatile("hlt"); break;
    }
}

/* Now, and not where the memory is mapped: few processes come here. */
static void leave_runtime_out_of_core(void) {
    SYS(madvise, LAYOUT_RT, LAYOUT_THREADS_END - LAYOUT_RT, MADV_DONTDUMP);
    SYS(madvise, LAYOUT_TABLES, LAYOUT_KEPT_LOW - LAYOUT_TABLES, MADV_DONTDUMP);
    lock_take(&cache_lock);
    for (struct region *r = region_first(); r; r = r->next)
        SYS(madvise, r->base, (size_t)(r->end - r->base), MADV_DONTDUMP);
    lock_drop(&cache_lock);
}

void signals_die(struct thread *t, const struct siginfo_raw *info) {
    int signo = info->signo;
    if (trace_level)
        say("dies of signal %d (code %d, address %lx) at guest pc %lx, rsp %lx, thread %d", signo, info->code,
            info->w[0], t->tb->pc, t->tb->gpr[RSP], t->tid);
    if (the_policy->thread_end) the_policy->thread_end(t->tb);
    if (the_mode->death) the_mode->death(t, signo);
    traced_process_ends(t, signo);
    kernel_default(signo);
    uint64_t mask = ~SIG_BIT(signo);
    int pid = (int)SYS(getpid), tid = (int)SYS(gettid);
    struct siginfo_raw copy = *info;
    signals_block_all();
    bool leaves = signals_dump_core(signo) && the_mode->kernel_signals && !signals_spare(t); /* a core shows the program's registers */
    if (leaves) SYS(rt_sigprocmask, 2 /* SIG_SETMASK */, &(uint64_t){~0ull}, 0, 8); /* synchronous ones, too */
    bool is_queued = (copy.code <= 0 || leaves) && SYS(rt_tgsigqueueinfo, pid, tid, signo, &copy) == 0;
    if (!is_queued) SYS(tgkill, pid, tid, signo);
    if (leaves) {
        leave_runtime_out_of_core();
        sigframe_leave(t, mask);
    }
    SYS(rt_sigprocmask, 2, &mask, 0, 8);
    die_by_fault(signo); /* still here: the kernel spares the first process of a namespace */
    for (;;) SYS(exit_group, 128 + signo);
}

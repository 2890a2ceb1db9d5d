#include "sphere/crash.h"

#include "engine/cache.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/gate.h"
#include "sphere/signals.h"
#include "sphere/symbols.h"

#define SIGBUS_ 7
#define RT_IMAGE_MOST (16u << 20)
#define STACK_WORDS 512
#define STACK_LINES 12

static void say_place(const char *what, uint64_t pc) {
    uint64_t off = pc - LAYOUT_RT, into;
    const char *name = symbols_find(pc, &into);
    if (name)
        say("  %s %s+0x%lx (reprise-rt+0x%lx)", what, name, into, off);
    else
        say("  %s reprise-rt+0x%lx (addr2line -e reprise-rt -f 0x%lx)", what, off, pc);
}

static bool in_image(uint64_t pc) { return pc >= LAYOUT_RT && pc < LAYOUT_RT + RT_IMAGE_MOST; }

void crash_report(struct thread *t, const struct siginfo_raw *info, const struct mcontext *mc) {
    /* the handler runs with its own signal blocked; reading a stack past its end must not end the report */
    uint64_t sync = SIGNALS_SYNC;
    SYS(rt_sigprocmask, 1 /* SIG_UNBLOCK */, &sync, 0, 8);
    static uint32_t reporting; /* a fault in the report itself, or of another thread */
    if (__atomic_exchange_n(&reporting, 1, __ATOMIC_SEQ_CST))
        for (;;) SYS(exit_group, 125);
    if (info->signo == SIGBUS_ && cache_contains(info->w[0]))
        die("kept translations were truncated while in use; run the program again");
    say("internal error: signal %d (code %d) at %lx, address %lx", info->signo, info->code, mc->rip, info->w[0]);
    if (in_image(mc->rip))
        say_place("in the runtime:", mc->rip);
    else if (cache_contains(mc->rip))
        say("  in the code cache, outside of any instruction");
    say("  guest pc %lx, thread %d, %lu blocks translated", t->tb->pc, t->tid, cache_stats.blocks);
    say("  rax %016lx rcx %016lx rdx %016lx rbx %016lx", mc->rax, mc->rcx, mc->rdx, mc->rbx);
    say("  rsp %016lx rbp %016lx rsi %016lx rdi %016lx", mc->rsp, mc->rbp, mc->rsi, mc->rdi);
    say("  r8  %016lx r9  %016lx r10 %016lx r11 %016lx", mc->r8, mc->r9, mc->r10, mc->r11);
    say("  r12 %016lx r13 %016lx r14 %016lx r15 %016lx", mc->r12, mc->r13, mc->r14, mc->r15);
    for (int i = 0, shown = 0; i < STACK_WORDS && shown < STACK_LINES; i++) {
        uint64_t w;
        if (!guest_read(&w, mc->rsp + 8u * (unsigned)i, 8)) break;
        if (!in_image(w)) continue;
        say_place("on the stack:", w);
        shown++;
    }
    for (;;) SYS(exit_group, 125);
}

void crash_on_purpose(void) { __asm__ volatile("movq $1, 0x10" ::: "memory"); }

/* ---- the program's own mistakes ---- */

static const char *part_of_runtime(gaddr a) {
    if (!aspace_is_runtime(a, 1)) return NULL;
    if (a >= LAYOUT_KEPT_BASE && a < LAYOUT_TABLES) return "kept translations";
    if (a >= LAYOUT_TABLES && a < LAYOUT_KEPT_LOW) return "lookup tables";
    if (a >= LAYOUT_KEPT_LOW && a < LAYOUT_KEPT_LOW_END) return "kept translations";
    if (a >= LAYOUT_CACHE && a < LAYOUT_CACHE_END) return "code cache";
    if (a >= LAYOUT_RT && a < LAYOUT_RT_ARENA) return "image";
    if (a >= LAYOUT_RT_ARENA && a < LAYOUT_RT_ARENA_END) return "memory";
    if (a >= LAYOUT_THREADS && a < LAYOUT_THREADS_END) return "thread blocks";
    return NULL;
}

void crash_name_wild_store(gaddr addr, gaddr pc) {
    static uint32_t said;
    const char *part = part_of_runtime(addr);
    if (part && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        say("the program wrote to %lx, which belongs to the runtime (%s; guest pc %lx)", addr, part, pc);
}

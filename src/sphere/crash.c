#include "sphere/crash.h"

#include "engine/cache.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/sys.h"
#include "sphere/gate.h"

#define SIGBUS_ 7

void crash_report(struct thread *t, const struct siginfo_raw *info, const struct mcontext *mc) {
    if (info->signo == SIGBUS_ && cache_contains(info->w[0])) die("kept translations were truncated while in use; run the program again");
    say("internal error: signal %d (code %d) at %lx, address %lx", info->signo, info->code, mc->rip, info->w[0]);
    if (mc->rip >= LAYOUT_RT && mc->rip < LAYOUT_RT_ARENA)
        say("  in the runtime: reprise-rt+0x%lx (addr2line -e reprise-rt -f 0x%lx)", mc->rip - LAYOUT_RT, mc->rip - LAYOUT_RT);
    else if (cache_contains(mc->rip))
        say("  in the code cache, outside of any instruction");
    say("  guest pc %lx, thread %d", t->tb->pc, t->tid);
    say("  rax %016lx rcx %016lx rdx %016lx rbx %016lx", mc->rax, mc->rcx, mc->rdx, mc->rbx);
    say("  rsp %016lx rbp %016lx rsi %016lx rdi %016lx", mc->rsp, mc->rbp, mc->rsi, mc->rdi);
    say("  r8  %016lx r9  %016lx r10 %016lx r11 %016lx", mc->r8, mc->r9, mc->r10, mc->r11);
    say("  r12 %016lx r13 %016lx r14 %016lx r15 %016lx", mc->r12, mc->r13, mc->r14, mc->r15);
    uint64_t sp = mc->rsp;
    for (int i = 0, shown = 0; i < 256 && shown < 12; i++) {
        uint64_t w;
        if (!guest_read(&w, sp + 8u * (unsigned)i, 8)) break;
        if (w < LAYOUT_RT || w >= LAYOUT_RT + (16u << 20)) continue;
        say("  on the stack: reprise-rt+0x%lx", w - LAYOUT_RT);
        shown++;
    }
    for (;;) SYS(exit_group, 125);
}

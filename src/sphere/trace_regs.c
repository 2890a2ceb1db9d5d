#include "sphere/trace_regs.h"

#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/segment.h"
#include "sphere/signals.h"

#define ARCH_SET_FS 0x1002
#define ARCH_GET_FS 0x1003
#define CHANGEABLE_FLAGS 0x254dd5ull /* what PTRACE_SETREGS may change: as FLAG_MASK of the kernel, with TF */

static uint64_t fs_base(void) {
    uint64_t base = 0;
    SYS(arch_prctl, ARCH_GET_FS, &base);
    return base;
}

static uint64_t shown_flags(const struct tblock *tb) { return tb->rflags | (tb->trap_flag ? RFLAGS_TF : 0); }

void trace_regs_show(const struct thread *t, uint64_t orig_rax, struct user_regs *r) {
    const struct tblock *tb = t->tb;
    const uint64_t *g = tb->gpr;
    *r = (struct user_regs){.r15 = g[R15],
                            .r14 = g[R14],
                            .r13 = g[R13],
                            .r12 = g[R12],
                            .rbp = g[RBP],
                            .rbx = g[RBX],
                            .r11 = g[R11],
                            .r10 = g[R10],
                            .r9 = g[R9],
                            .r8 = g[R8],
                            .rax = g[RAX],
                            .rcx = g[RCX],
                            .rdx = g[RDX],
                            .rsi = g[RSI],
                            .rdi = g[RDI],
                            .orig_rax = orig_rax,
                            .rip = tb->pc,
                            .cs = GUEST_CS,
                            .eflags = shown_flags(tb),
                            .rsp = g[RSP],
                            .ss = GUEST_SS,
                            .fs_base = fs_base(),
                            .gs_base = tb->guest_gs};
}

static void set_flags(struct tblock *tb, uint64_t flags) {
    flags = (shown_flags(tb) & ~CHANGEABLE_FLAGS) | (flags & CHANGEABLE_FLAGS);
    tb->trap_flag = flags & RFLAGS_TF;
    tb->rflags = flags & ~RFLAGS_TF;
}

static void set_bases(struct tblock *tb, uint64_t fs, uint64_t gs) {
    if (fs != fs_base()) SYS(arch_prctl, ARCH_SET_FS, fs);
    tb->guest_gs = gs;
}

void trace_regs_take(struct thread *t, const struct user_regs *r) {
    struct tblock *tb = t->tb;
    const uint64_t g[16] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
                            r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
    memcpy(tb->gpr, g, sizeof g);
    tb->pc = r->rip;
    set_flags(tb, r->eflags);
    set_bases(tb, r->fs_base, r->gs_base);
}

struct ev_regs trace_regs_event(const struct thread *t, uint64_t extended) {
    struct ev_regs v = {.pc = t->tb->pc,
                        .rflags = shown_flags(t->tb),
                        .fs_base = fs_base(),
                        .gs_base = t->tb->guest_gs,
                        .sigmask = t->sigmask,
                        .extended = extended};
    memcpy(v.gpr, t->tb->gpr, sizeof v.gpr);
    return v;
}

void trace_regs_from_event(struct thread *t, const struct ev_regs *v) {
    memcpy(t->tb->gpr, v->gpr, sizeof v->gpr);
    t->tb->pc = v->pc;
    set_flags(t->tb, v->rflags);
    set_bases(t->tb, v->fs_base, v->gs_base);
    t->sigmask = v->sigmask & ~(SIG_BIT(9) | SIG_BIT(19));
}

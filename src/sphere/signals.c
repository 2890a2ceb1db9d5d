#include "sphere/signals.h"

#include "ckpt/rt/track.h"
#include "engine/engine.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/events.h"
#include "sphere/borrowed.h"
#include "sphere/code_watch.h"
#include "sphere/crash.h"
#include "sphere/debug.h"
#include "sphere/gate.h"
#include "sphere/hurry.h"
#include "sphere/mode.h"
#include "sphere/segment.h"
#include "sphere/shared.h"
#include "sphere/sigframe.h"
#include "sphere/task_state.h"
#include "sphere/traced.h"

#define SA_NODEFER_ 0x40000000ull
#define SA_RESETHAND_ 0x80000000ull
#define SA_RESTORER_ 0x04000000ull
#define SA_ONSTACK_ 0x08000000ull
#define SA_SIGINFO_ 4ull
#define SA_RESTART_ 0x10000000ull
#define SA_NOCLDWAIT_ 2ull
#define SA_KERNEL_KEEPS (SA_RESTART_ | 1 /* NOCLDSTOP */ | 2 /* NOCLDWAIT */)

#define SIGILL_ 4
#define SIGTRAP_ 5
#define SIGBUS_ 7
#define BUS_ADRERR_ 2
#define SIGFPE_ 8
#define SIGSEGV_ 11
#define SIGCHLD_ 17
#define SIGSTOP_ 19

#define SIG_IGN_ 1
#define RFLAGS_DF 0x400ull
#define RFLAGS_RF 0x10000ull
#define TRAP_BRKPT_ 1 /* si_code of a debug exception without a reason: int1's, as a rule */
#define TRAP_TRACE_ 2 /* si_code of a single step */
#define INT1 0xf1
#define TRAP_DEBUG 1

extern char signal_entry[], signal_restorer[], rt_resume[], rt_resume_end[], rt_step[];

static bool is_sync(int signo) { return signo <= 64 && (SIGNALS_SYNC & SIG_BIT(signo)); }

/* ---- masks ---- */

void signals_block_all(void) {
    uint64_t all = ~SIGNALS_SYNC;
    SYS(rt_sigprocmask, 2 /* SIG_SETMASK */, &all, 0, 8);
}

void signals_apply_mask(struct thread *t) {
    if (!the_mode->kernel_signals) return;
    uint64_t mask = t->sigmask & ~SIGNALS_SYNC;
    SYS(rt_sigprocmask, 2, &mask, 0, 8);
}

void signals_give_back(struct thread *t) {
    uint64_t all = ~0ull;
    int pid = (int)SYS(getpid), tid = (int)SYS(gettid);
    if (!the_mode->kernel_signals) return;
    SYS(rt_sigprocmask, 2, &all, 0, 8);
    for (int i = 0; i < t->n_pending; i++) {
        struct siginfo_raw info = t->pending[i].info;
        SYS(rt_tgsigqueueinfo, pid, tid, info.signo, &info);
    }
    t->n_pending = 0;
}

/* ---- the kernel's side: what interrupted us, and where ---- */

static void regs_from(struct fault_regs *r, const struct mcontext *mc) {
    const uint64_t g[16] = {mc->rax, mc->rcx, mc->rdx, mc->rbx, mc->rsp, mc->rbp, mc->rsi, mc->rdi,
                            mc->r8,  mc->r9,  mc->r10, mc->r11, mc->r12, mc->r13, mc->r14, mc->r15};
    memcpy(r->gpr, g, sizeof g);
    r->host_pc = mc->rip;
    r->rflags = mc->eflags & ~RFLAGS_TF;
}

static void queue(struct thread *t, const struct siginfo_raw *info, bool is_fault) {
    struct pending_signal s = {.info = *info, .is_fault = is_fault};
    if (signals_is_held(t, &s)) {
        t->held_came = true;
        if (signals_held(t) & SIG_BIT(info->signo)) return; /* the kernel keeps one of a kind, too */
    }
    if (t->n_pending < PENDING_MAX) t->pending[t->n_pending++] = s;
    t->tb->pending = 1;
}

/* Goes on in the runtime: flags of the program's that C code cannot live with stay behind. */
static void leave_to(struct ucontext_raw *uc, const char *place) {
    uc->mc.rip = (uint64_t)place;
    uc->mc.eflags &= ~(RFLAGS_TF | RFLAGS_DF | RFLAGS_ODD);
}

/* Leaves the interrupted place for good: guest registers are in the thread block, go on at the safepoint. */
static void leave_to_safepoint(struct ucontext_raw *uc) { leave_to(uc, rt_resume); }

static void hold_further_signals(struct ucontext_raw *uc) { uc->sigmask |= ~SIGNALS_SYNC; }

static bool is_pushf(const uint8_t *code) { return code[0] == 0x9c || (code[0] == 0x66 && code[1] == 0x9c); }

/* Without RF, which comes from our own way in: what the processor then shows of it between two repetitions of a string instruction,
 * Intel's set and AMD's clear, is what it shows natively. */
static void step_from(struct thread *t, struct ucontext_raw *uc, enum stepping why) {
    uc->mc.eflags = (uc->mc.eflags & ~RFLAGS_RF) | RFLAGS_TF;
    t->stepping = why;
    t->step_is_pushf = why != STEP_FOR_GUEST && is_pushf((const uint8_t *)uc->mc.rip);
    t->step_from = uc->mc.rip;
}

/* A step has pushed flags with a trap flag that is ours. */
static void hide_trap_flag(const struct thread *t, struct ucontext_raw *uc) {
    if (t->step_is_pushf) ((uint8_t *)uc->mc.rsp)[1] &= (uint8_t) ~(RFLAGS_TF >> 8);
}

static bool between(uint64_t pc, const char *lo, const char *hi) { return pc >= (uint64_t)lo && pc < (uint64_t)hi; }

/* Something is pending: brings the thread from where it was interrupted towards its next safepoint. */
static void head_for_safepoint(struct thread *t, struct ucontext_raw *uc) {
    uint64_t pc = uc->mc.rip;
    uc->mc.eflags &= ~RFLAGS_TF;
    if (t->stepping == STEP_OUT) hide_trap_flag(t, uc);
    t->stepping = STEP_NOT;
    if (cache_contains(pc)) {
        if (fault_at_boundary(pc)) {
            if (the_mode->defers_signals) { /* on, up to the next tick point */
                ticks_set_budget(t->tb, 0);
                return;
            }
            struct fault_regs regs;
            regs_from(&regs, &uc->mc);
            fault_to_guest(t->tb, &regs);
            leave_to_safepoint(uc);
        } else { /* in the middle of one instruction's sequence: a few single steps lead out of it */
            step_from(t, uc, STEP_OUT);
        }
    } else if (between(pc, rt_resume, rt_resume_end)) {
        leave_to_safepoint(uc); /* the program's flags may be loaded already */
    } else if (between(pc, gate_check, gate_insn + 1) || between(pc, ask_check, ask_insn + 1)) {
        uc->mc.rip = (uint64_t)gate_abort;
    }
}

static void queue_step_trap(struct thread *t) {
    struct siginfo_raw info = {.signo = SIGTRAP_, .code = TRAP_TRACE_};
    info.w[0] = t->tb->pc;
    t->fault_err = 0;
    t->fault_trapno = TRAP_DEBUG;
    queue(t, &info, true);
}

/* The step of an instruction has ended in front of the next one, inside the cache. An indirect transfer arrives there with rcx in s0,
 * which is loaded only where the program still needs it, and otherwise holds what depends on how the way there was found; whoever
 * steps sees it all the same. */
static void step_to_guest(struct thread *t, const struct ucontext_raw *uc) {
    struct fault_regs regs;
    struct insn in;
    regs_from(&regs, &uc->mc);
    bool indirect = t->step_pc && decode_executed(&in, t->step_pc) &&
                    (in.cls == INSN_RET || in.cls == INSN_JMP_IND || in.cls == INSN_CALL_IND);
    if (indirect) regs.gpr[RCX] = t->tb->s0;
    fault_to_guest(t->tb, &regs);
}

/* A step of the program's own, inside the cache or just out of it. */
static void on_guest_step(struct thread *t, struct ucontext_raw *uc) {
    uint64_t pc = uc->mc.rip;
    if (cache_contains(pc) && !fault_at_boundary(pc)) {
        step_from(t, uc, STEP_FOR_GUEST);
        return;
    }
    uc->mc.eflags &= ~RFLAGS_TF;
    t->stepping = STEP_NOT;
    if (!cache_contains(pc)) { /* the runtime does the rest of the instruction */
        t->tb->stepped = true;
        return;
    }
    step_to_guest(t, uc);
    queue_step_trap(t);
    leave_to_safepoint(uc);
    hold_further_signals(uc);
}

/* A string instruction traps after each repetition; a breakpoint behind it in the cache is quicker. There is one kernel thread. */
static uint8_t *planted, replaced;

static void unplant(void) {
    if (planted) *planted = replaced;
    planted = NULL;
}

static bool plant_behind(uint64_t pc) {
    struct insn in;
    if (!decode_executed(&in, pc)) return false;
    planted = (uint8_t *)pc + in.len;
    replaced = *planted;
    *planted = INT3;
    return true;
}

/* A step of the debugger's: goes on to the next instruction boundary, or until the runtime does the rest. */
static void on_debugger_step(struct thread *t, struct ucontext_raw *uc) {
    uint64_t pc = uc->mc.rip;
    hide_trap_flag(t, uc);
    bool inside = cache_contains(pc);
    if (inside && pc == t->step_from && plant_behind(pc)) {
        uc->mc.eflags &= ~RFLAGS_TF;
        return;
    }
    if (inside && !fault_at_boundary(pc)) {
        step_from(t, uc, STEP_FOR_DEBUGGER);
        return;
    }
    uc->mc.eflags &= ~RFLAGS_TF;
    t->stepping = STEP_NOT;
    if (!inside) return;
    step_to_guest(t, uc);
    t->tb->rflags &= ~RFLAGS_RF;
    signals_leave_to_enter(uc);
}

void signals_step_on(struct thread *t, struct ucontext_raw *uc) {
    t->step_pc = fault_guest_pc(uc->mc.rip);
    step_from(t, uc, STEP_FOR_DEBUGGER);
}

void signals_leave_to_enter(struct ucontext_raw *uc) {
    leave_to(uc, (const char *)engine_run);
    hold_further_signals(uc);
}

void signals_regs(struct fault_regs *r, const struct ucontext_raw *uc) { regs_from(r, &uc->mc); }

static void on_fault(struct thread *t, struct siginfo_raw *info, struct ucontext_raw *uc) {
    uint64_t pc = uc->mc.rip;
    if (between(pc, guest_copy_words, guest_copy_insn)) {
        uc->mc.rip = (uint64_t)guest_copy_insn;
        return;
    }
    if (between(pc, guest_copy_insn, guest_copy_end)) {
        t->copy_fault = (struct guest_fault){info->signo, info->code, info->w[0], uc->mc.trapno, uc->mc.err};
        uc->mc.rip = (uint64_t)guest_copy_end;
        return;
    }
    struct fault_regs regs;
    regs_from(&regs, &uc->mc);
    enum fault_where where = fault_to_guest(t->tb, &regs);
    if (where == FAULT_NOT_CACHE) crash_report(t, info, &uc->mc);
    bool was_step = t->stepping == STEP_FOR_GUEST;
    t->stepping = STEP_NOT;
    if (where == FAULT_NOT_THE_GUESTS) { /* on with the guest, from what is in the thread block now */
        t->tb->stepped = was_step;
        t->tb->pending = 1;
        leave_to_safepoint(uc);
        hold_further_signals(uc);
        return;
    }
    t->fault_err = uc->mc.err;
    t->fault_trapno = uc->mc.trapno;
    t->fault_cr2 = uc->mc.cr2;
    if (info->signo == SIGSEGV_ && t->fault_trapno == TRAP_PAGE_FAULT && (t->fault_err & PF_WRITE))
        crash_name_wild_store(t->fault_cr2, t->tb->pc);
    /* a fault that names the instruction names the guest's */
    bool names_pc =
        info->signo == SIGILL_ || info->signo == SIGFPE_ || (info->signo == SIGTRAP_ && info->code != SI_KERNEL_);
    if (names_pc) info->w[0] = t->tb->pc;
    queue(t, info, true);
    leave_to_safepoint(uc);
    hold_further_signals(uc);
}

static bool is_write_in_cache(int signo, const struct ucontext_raw *uc) {
    return signo == SIGSEGV_ && uc->mc.trapno == TRAP_PAGE_FAULT && (uc->mc.err & PF_WRITE) &&
           cache_contains(uc->mc.rip);
}

/* A write in the cache to a page that the tracker has closed: it is repeated. At once, because writes that are not the guest's
 * own (host addresses below its stack) would otherwise be left out. In the cache no thread holds a lock. */
static bool is_closed_page(int signo, const struct ucontext_raw *uc) {
    return is_write_in_cache(signo, uc) && track_write_fault(uc->mc.cr2);
}

/* A word of ours is cleared in a page of the stack that holds code which another thread has translated since the word was put there. */
static bool is_own_word_in_code(int signo, const struct ucontext_raw *uc) {
    return is_write_in_cache(signo, uc) && fault_is_own_store(uc->mc.rip) && code_watch_write_fault(uc->mc.cr2, 0);
}

/* A step of ours has ended. Some hypervisors lose the reason (DR6.BS) of one step in ten thousand. */
static bool is_step(const struct thread *t, const struct siginfo_raw *info) {
    if (!t->stepping || info->signo != SIGTRAP_) return false;
    return info->code == TRAP_TRACE_ || (info->code == TRAP_BRKPT_ && *(const uint8_t *)t->step_from != INT1);
}

static bool is_kick(const struct thread *t, const struct siginfo_raw *info) {
    if (hurry_is_kick(info)) return true;
    return unlikely(hurry_may_be_kick(info)) && (t->tb->kick || trace_was_kicked(t->tid));
}

void signals_handle(int signo, struct siginfo_raw *info, struct ucontext_raw *uc) {
    struct thread *t = thread_self();
    bool by_kernel = info->code > 0;
    if (is_sync(signo) && by_kernel) {
        if (unlikely(track_closes) && is_closed_page(signo, uc)) return;
        if (unlikely(code_watch_protected && !shared_active) && is_own_word_in_code(signo, uc)) return;
        hurry_swallowed(t->tb, signo);
        if (uc->mc.rip == (uint64_t)rt_step) {
            uc->mc.rip = t->tb->step_host_pc;
            t->step_pc = t->tb->pc;
            step_from(t, uc, t->tb->trap_flag ? STEP_FOR_GUEST : STEP_FOR_DEBUGGER);
            return;
        }
        bool was_planted = planted && uc->mc.rip == (uint64_t)planted + 1;
        unplant();
        if (was_planted && signo == SIGTRAP_ && t->stepping == STEP_FOR_DEBUGGER) {
            uc->mc.rip--;
            t->step_is_pushf = false;
            on_debugger_step(t, uc);
            return;
        }
        if (is_step(t, info)) {
            if (t->stepping == STEP_FOR_GUEST)
                on_guest_step(t, uc);
            else if (t->stepping == STEP_FOR_DEBUGGER)
                on_debugger_step(t, uc);
            else
                head_for_safepoint(t, uc);
            return;
        }
        if (signo == SIGTRAP_ && info->code == SI_KERNEL_ &&
            fault_is_tick(t->tb, uc->mc.rip - 1, &uc->mc.rip, &uc->mc.rcx))
            return;
        if (debug_is_on && signo == SIGSEGV_ && debug_fault(t, info, uc)) return;
        on_fault(t, info, uc);
        return;
    }
    if (unlikely(is_kick(t, info))) {
        t->tb->kick = 0;
        t->tb->pending = 1;
        t->kicked = true;
        if (!t->stepping) head_for_safepoint(t, uc);
        return;
    }
    if (unlikely(segment_is_loss(info)) && !t->tb->own_ss) return; /* has made a system call meanwhile */
    queue(t, info, false);
    hold_further_signals(uc);
    if (!t->stepping) head_for_safepoint(t, uc);
}

/* ---- the program's side ---- */

static bool default_kills(int signo) {
    const uint64_t spared = SIG_BIT_KILL | SIG_BIT(17) /* CHLD */ | SIG_BIT(18) | SIG_BIT_STOP | SIG_BIT(20) |
                            SIG_BIT(21) | SIG_BIT(22) /* stop and continue */ | SIG_BIT(23) /* URG */ |
                            SIG_BIT(28) /* WINCH */;
    return !(spared & SIG_BIT(signo));
}

static bool default_ignores(int signo) { return signo == 17 || signo == 18 || signo == 23 || signo == 28; }

bool signals_dump_core(int signo) {
    const uint64_t those = SIG_BIT(3) /* QUIT */ | SIG_BIT(4) /* ILL */ | SIG_BIT(5) /* TRAP */ |
                           SIG_BIT(6) /* ABRT */ | SIG_BIT(7) /* BUS */ | SIG_BIT(8) /* FPE */ |
                           SIG_BIT(11) /* SEGV */ | SIG_BIT(24) /* XCPU */ | SIG_BIT(25) /* XFSZ */ |
                           SIG_BIT(31) /* SYS */;
    return those & SIG_BIT(signo);
}

/* The process dies of it, but not at once: a core shows the program, not us, and a recording wants to know of any death, and where. */
static bool is_last_word(int signo, const struct ksigaction *sa) {
    return sa->handler == 0 && (the_mode->defers_signals ? default_kills(signo) : signals_dump_core(signo));
}

bool signals_ends(const struct thread *t, int signo) {
    return signo > 0 && signo <= NSIG_MAX && is_last_word(signo, &t->process->action[signo]) &&
           !(t->sigmask & SIG_BIT(signo)) && !t->process->catches_all;
}

/* Installs for the kernel what the program's action for signo calls for. */
static long install_as(int signo, const struct ksigaction *sa, bool catches_all) {
    struct ksigaction k = {0};
    if (!the_mode->kernel_signals && !is_sync(signo)) return 0;
    if (sa->handler > 1 || catches_all || is_sync(signo) || is_last_word(signo, sa)) {
        k.handler = (uint64_t)signal_entry;
        k.flags = SA_SIGINFO_ | SA_ONSTACK_ | SA_RESTORER_ | (sa->flags & SA_KERNEL_KEEPS);
        k.restorer = (uint64_t)signal_restorer;
        k.mask = ~SIGNALS_SYNC;
        if (sa->handler <= 1) k.flags |= SA_RESTART_; /* the program will not notice that it came */
        if (sa->handler == 1 && signo == SIGCHLD_) k.flags |= SA_NOCLDWAIT_;
    } else {
        k.handler = sa->handler;
        k.flags = (sa->flags & SA_KERNEL_KEEPS) | SA_RESTORER_;
        k.restorer = (uint64_t)signal_restorer;
    }
    return SYS(rt_sigaction, signo, &k, 0, 8);
}

static long install(struct process *p, int signo) { return install_as(signo, &p->action[signo], p->catches_all); }

static void install_all(struct process *p) {
    for (int s = 1; s <= NSIG_MAX; s++)
        if (SIG_BIT(s) != SIG_BIT_KILL && SIG_BIT(s) != SIG_BIT_STOP) install(p, s);
}

void signals_catch_all(struct process *p) {
    lock_take(&p->lock);
    bool did = p->catches_all;
    p->catches_all = true;
    if (!did) install_all(p);
    lock_drop(&p->lock);
}

void signals_catch_own(struct process *p) {
    if (!p->catches_all && !p->cleared) return;
    p->catches_all = p->cleared = false;
    install_all(p);
}

void signals_clear_handlers(struct process *p) {
    for (int signo = 1; signo <= NSIG_MAX; signo++)
        p->action[signo] = (struct ksigaction){.handler = p->action[signo].handler == SIG_IGN_ ? SIG_IGN_ : 0};
    p->cleared = true;
}

bool signals_restart(const struct thread *t) {
    for (int i = 0; i < t->n_pending; i++) {
        const struct ksigaction *sa = &t->process->action[t->pending[i].info.signo];
        if (sa->handler > 1 && !(sa->flags & SA_RESTART_)) return false;
    }
    return true;
}

/* Natively the program stops by itself; here the signal has come to us because it is traced. */
static bool default_stops(int signo) { return signo >= 19 && signo <= 22; }

static void stop_process(struct thread *t, int signo) {
    if (signo != SIGSTOP_ && task_group_is_orphaned()) return;
    if (!traced_group_stop(t, signo)) SYS(kill, t->tgid, SIGSTOP_);
}

/* The handler's stack cannot be written: SIGSEGV instead, which may have a stack of its own. */
static bool no_frame(struct thread *t, int signo) {
    struct pending_signal segv = {.info = {.signo = SIGSEGV_, .code = SI_KERNEL_}, .is_fault = true};
    if (signo == SIGSEGV_) signals_die(t, &segv.info);
    return signals_deliver(t, &segv, EVF_AFTER);
}

static bool deliver(struct thread *t, struct pending_signal *s, uint8_t flags) {
    int signo = s->info.signo;
    if (the_mode->signal && !the_mode->signal(t, s, flags)) return false;
    struct process *p = t->process;
    lock_take(&p->lock);
    struct ksigaction sa = p->action[signo];
    bool blocked = s->is_fault && (t->sigmask & SIG_BIT(signo));
    if (sa.handler > 1 && !blocked && (sa.flags & SA_RESETHAND_)) {
        p->action[signo].handler = 0;
        install(p, signo);
    }
    lock_drop(&p->lock);
    if (s->is_fault && (blocked || sa.handler <= 1)) signals_die(t, &s->info);
    if (sa.handler == 1) return false;
    if (sa.handler == 0) {
        if (default_ignores(signo) || signals_spare(t)) return false;
        if (default_stops(signo)) {
            if (the_mode->kernel_signals) stop_process(t, signo);
            return false;
        }
        signals_die(t, &s->info);
    }
    if (s->is_fault && is_sync(signo)) {
        t->shown_err = t->fault_err;
        t->shown_trapno = t->fault_trapno;
        if (t->fault_trapno == TRAP_PAGE_FAULT) t->shown_cr2 = t->fault_cr2;
    }
    if (!sigframe_push(t, &s->info, &sa)) return no_frame(t, signo);
    if (t->restore_mask) t->restore_mask = false;
    t->sleep_rest.next = 0;
    t->sigmask |= sa.mask;
    if (!(sa.flags & SA_NODEFER_)) t->sigmask |= SIG_BIT(signo);
    t->sigmask &= ~(SIG_BIT_KILL | SIG_BIT_STOP);
    if (traced_may(t)) traced_in_handler(t);
    return true;
}

bool signals_deliver(struct thread *t, struct pending_signal *s, uint8_t flags) {
    if (the_mode->before_signal && !the_mode->before_signal(t, s, &flags)) return false;
    return deliver(t, s, flags);
}

void signals_deliver_chosen(struct thread *t, struct pending_signal *s) { deliver(t, s, EVF_AFTER); }

/* A page fault that we caused ourselves: watched code pages, shared pages of others. */
static bool is_own_fault(struct thread *t, const struct pending_signal *s) {
    if (!s->is_fault || s->info.signo != SIGSEGV_ || t->fault_trapno != TRAP_PAGE_FAULT) return false;
    if (unlikely(shared_active) && shared_fault(t, t->fault_cr2, t->fault_err)) return true;
    if (!(t->fault_err & PF_WRITE)) return false;
    if (unlikely(track_closes) && track_write_fault(t->fault_cr2)) return true;
    return code_watch_write_fault(t->fault_cr2, t->tb->pc);
}

/* Such a page is borrowed, and its file has no page there. */
static bool is_missing(const struct thread *t) { return unlikely(borrowed_any) && borrowed_pages(t->fault_cr2); }

/* Not after a trap: those come behind their instruction. */
static bool is_tried_again(struct thread *t, const struct pending_signal *s) {
    const uint64_t recurring = SIG_BIT(SIGILL_) | SIG_BIT(SIGBUS_) | SIG_BIT(SIGFPE_) | SIG_BIT(SIGSEGV_);
    int signo = s->info.signo;
    if (!the_mode->fault || !s->is_fault || !(recurring & SIG_BIT(signo)) || t->tb->trap_flag || t->tb->stepped)
        return false;
    bool kills = (t->sigmask & SIG_BIT(signo)) || t->process->action[signo].handler <= 1;
    return the_mode->fault(t, s, kills);
}

/* Replay: memory behind the end of a file, which is closed for want of such an end. */
static bool is_bus(const struct thread *t, const struct pending_signal *s) {
    return s->is_fault && t->fault_trapno == TRAP_PAGE_FAULT && shared_is_bus(t->fault_cr2);
}

/* Whether something waits that is not held by the program's mask. */
static bool has_deferred(const struct thread *t) {
    for (int i = 0; i < t->n_pending; i++) {
        int signo = t->pending[i].info.signo;
        if (!is_sync(signo) || !(t->sigmask & SIG_BIT(signo))) return true;
    }
    return false;
}

void signals_begin_wait(struct thread *t, uint64_t mask) {
    t->restore_mask = true;
    t->saved_mask = t->sigmask;
    t->sigmask = mask & ~(SIG_BIT_KILL | SIG_BIT_STOP);
}

void signals_end_wait(struct thread *t) {
    t->sigmask = t->saved_mask;
    t->restore_mask = false;
    signals_apply_mask(t);
}

/* What is pending; with `faults` only what the program's own instructions have raised. */
static void deliver_pending(struct thread *t, bool faults, uint8_t flags) {
    struct tblock *tb = t->tb;
    signals_block_all();
    tb->pending = 0;
    struct pending_signal todo[PENDING_MAX];
    int n = t->n_pending;
    memcpy(todo, t->pending, sizeof todo[0] * (size_t)n);
    t->n_pending = 0;
    for (int i = 0; i < n; i++) {
        struct pending_signal *s = &todo[i];
        if (is_bus(t, s))
            s->info.signo = SIGBUS_;
        else if (is_own_fault(t, s)) {
            if (likely(!is_missing(t))) continue;
            s->info.signo = SIGBUS_;
            s->info.code = BUS_ADRERR_;
            t->fault_err &= ~(uint64_t)PF_PRESENT;
        }
        if (is_tried_again(t, s)) continue;
        if (signals_is_held(t, s) || (faults && !s->is_fault)) { /* later */
            t->pending[t->n_pending++] = *s;
            continue;
        }
        signals_deliver(t, s, flags);
        flags = EVF_AFTER;
    }
    if (t->restore_mask) signals_end_wait(t);
    if (!faults || !has_deferred(t)) signals_apply_mask(t);
}

static bool has_fault(const struct thread *t) {
    for (int i = 0; i < t->n_pending; i++)
        if (t->pending[i].is_fault) return true;
    return false;
}

void signals_safepoint(struct tblock *tb) {
    struct thread *t = tb->thread;
    if (!the_mode->defers_signals) {
        deliver_pending(t, false, 0);
        if (traced_may(t)) traced_safepoint(t, 0);
        return;
    }
    tb->pending = 0;
    bool fault = has_fault(t);
    if (fault) deliver_pending(t, true, 0);
    if (has_deferred(t) || !fault || t->kicked) ticks_set_budget(tb, 0); /* or somebody wants us to stop (hurry.h) */
}

void signals_deliver_deferred(struct thread *t, uint8_t flags) {
    /* with the mask in force again, the kernel may hand over the next one: its frame goes on top, as natively */
    do {
        deliver_pending(t, false, flags);
        flags = EVF_AFTER;
    } while (has_deferred(t));
}

bool signals_is_waiting(const struct thread *t) { return has_deferred(t); }

bool signals_will_kill(const struct thread *t) {
    for (int i = 0; i < t->n_pending; i++) {
        int signo = t->pending[i].info.signo;
        if (!t->process->action[signo].handler && default_kills(signo)) return true;
    }
    return false;
}

void signals_raise_fault(struct tblock *tb, int signo, int code, gaddr addr) {
    struct siginfo_raw info = {.signo = signo, .code = code};
    info.w[0] = addr;
    signals_block_all();
    queue(tb->thread, &info, true);
}

void signals_raise(struct tblock *tb, const struct guest_fault *f) {
    struct thread *t = tb->thread;
    t->fault_err = f->err;
    t->fault_trapno = f->trapno;
    t->fault_cr2 = f->addr;
    tb->rflags |= RFLAGS_RF;
    signals_raise_fault(tb, f->signo, f->code, f->addr);
    signals_safepoint(tb);
}

void signals_raise_copy_fault(struct tblock *tb) { signals_raise(tb, &tb->thread->copy_fault); }

void signals_step_trap(struct tblock *tb) {
    tb->stepped = false;
    signals_block_all();
    queue_step_trap(tb->thread);
    signals_safepoint(tb);
}

/* ---- system calls ---- */

long signals_sigaction(struct tblock *tb, uint64_t a[6]) {
    struct process *p = tb->thread->process;
    int signo = (int)a[0];
    if (signo < 1 || signo > NSIG_MAX || a[3] != 8) return -EINVAL;
    struct ksigaction sa, old;
    if (a[1]) {
        if (signo == 9 || signo == 19) return -EINVAL;
        if (!guest_read(&sa, a[1], sizeof sa)) return -EFAULT;
        sa.mask &= ~(SIG_BIT_KILL | SIG_BIT_STOP);
    }
    lock_take(&p->lock);
    old = p->action[signo];
    long ret = 0;
    if (a[1]) {
        p->action[signo] = sa;
        ret = install(p, signo);
    }
    lock_drop(&p->lock);
    if (ret == 0 && a[1] && sa.handler == SIG_IGN_) signals_drop_held(tb->thread, SIG_BIT(signo));
    if (ret == 0 && a[2] && !guest_write(a[2], &old, sizeof old)) return -EFAULT;
    return ret;
}

static void recheck_held(struct thread *t) {
    if (t->n_pending) t->tb->pending = 1;
}

long signals_sigprocmask(struct tblock *tb, uint64_t a[6]) {
    struct thread *t = tb->thread;
    if (a[3] != 8) return -EINVAL;
    uint64_t old = t->sigmask, set;
    if (a[1]) {
        if (!guest_read(&set, a[1], 8)) return -EFAULT;
        switch (a[0]) {
        case 0: t->sigmask |= set; break;
        case 1: t->sigmask &= ~set; break;
        case 2: t->sigmask = set; break;
        default: return -EINVAL;
        }
        t->sigmask &= ~(SIG_BIT_KILL | SIG_BIT_STOP);
        if (t->sigmask != old) signals_apply_mask(t);
        recheck_held(t);
    }
    if (a[2] && !guest_write(a[2], &old, 8)) return -EFAULT;
    return 0;
}

long signals_sigaltstack(struct tblock *tb, uint64_t a[6]) {
    struct thread *t = tb->thread;
    struct altstack now = t->altstack, set;
    uint64_t sp = tb->gpr[RSP];
    bool on = !(now.flags & 2) && sp > now.sp && sp - now.sp <= now.size;
    if (on && !(now.flags & (1 << 31))) now.flags |= 1;
    if (a[0]) {
        if (!guest_read(&set, a[0], sizeof set)) return -EFAULT;
        if (now.flags & 1) return -EPERM;
        int mode = set.flags & ~(1 << 31);
        if (mode != 0 && mode != 1 && mode != 2) return -EINVAL;
        if (mode == 2) {
            t->altstack = (struct altstack){0, 2, 0, 0};
        } else {
            if (set.size < 2048) return -ENOMEM;
            t->altstack = set;
            t->altstack.flags &= 1 << 31;
        }
    }
    if (a[1] && !guest_write(a[1], &now, sizeof now)) return -EFAULT;
    return 0;
}

long signals_sigreturn(struct tblock *tb, uint64_t a[6]) {
    struct thread *t = tb->thread;
    signals_block_all();
    bool good = sigframe_pop(t);
    signals_apply_mask(t);
    recheck_held(t);
    if (!good) signals_raise_fault(tb, SIGSEGV_, SI_KERNEL_, 0);
    return 0;
}

long signals_with_mask(struct tblock *tb, uint64_t nr, uint64_t a[6], int mask_arg) {
    struct thread *t = tb->thread;
    uint64_t set;
    if (!a[mask_arg]) return gate_syscall((long)nr, a);
    if (!guest_read(&set, a[mask_arg], 8)) return -EFAULT;
    uint64_t copy = signals_to_wait_with(t, set);
    a[mask_arg] = (uint64_t)&copy;
    long ret = signals_issue_waiting((long)nr, a);
    signals_waited(t, set, ret);
    return ret;
}

/* A call that succeeded has put the mask back before any signal could come. */
void signals_waited(struct thread *t, uint64_t mask, long ret) {
    if (t->tb->pending && ret == -EINTR) signals_begin_wait(t, mask);
}

/* ---- start ---- */

uint64_t signals_ignored(const struct process *p) {
    uint64_t set = 0;
    for (int s = 1; s <= NSIG_MAX; s++)
        if (p->action[s].handler == 1) set |= SIG_BIT(s);
    return set;
}

static bool kernel_ignores(int s) {
    struct ksigaction k;
    return SYS(rt_sigaction, s, 0, &k, 8) == 0 && k.handler == 1;
}

void signals_start(struct process *p, uint64_t inherited_mask, const uint64_t *ignored) {
    for (int s = 1; s <= NSIG_MAX; s++)
        if (ignored ? (*ignored & SIG_BIT(s)) != 0 : kernel_ignores(s)) p->action[s].handler = 1;
    for (int s = 1; s <= NSIG_MAX; s++)
        if (is_sync(s) || is_last_word(s, &p->action[s])) install(p, s);
    sigframe_start();
}

#include "sphere/traced.h"

#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include "engine/cache.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/events.h"
#include "sphere/forced_write.h"
#include "sphere/gate.h"
#include "sphere/mode.h"
#include "sphere/sigframe.h"
#include "sphere/signals.h"
#include "sphere/task_state.h"
#include "sphere/trace_regs.h"
#include "sphere/trace_watch.h"
#include "sphere/writers.h"

#define SIGTRAP_ 5
#define SIGCHLD_ 17
#define SIGCONT_ 18
#define SIGSTOP_ 19
#define ERESTARTSYS_ 512l /* the kernel's own: what a tracer sees of a call that will be made again */
#define ARCH_X86_64 0xc000003e
#define LOOK_AFTER_MS 100 /* whether the tracer still lives */

#define DR6_STEP (1u << 14)
#define TRAP_TRACE_ 2
#define TRAP_HWBKPT_ 4

#define STOPPED_BY(signo) ((signo) << 8 | 0x7f)

static bool emulates_calls(const struct tracee *e) { return e->how == RESUME_SYSEMU || e->how == RESUME_SYSEMU_STEP; }
static bool steps(const struct tracee *e) { return e->how == RESUME_STEP || e->how == RESUME_SYSEMU_STEP; }
/* For its tracer, or to see what its debug registers watch. */
static bool goes_stepwise(const struct tracee *e) { return steps(e) || (trace_watches(e) && e->how != RESUME_DETACH); }

/* ---- memory ---- */

/* Here, with the turn. */
static void answer(struct thread *t, struct trace_letter *l, uint8_t flags) {
    uint32_t len = MIN(l->len, (uint32_t)TRACE_LETTER);
    if (l->kind == LETTER_PEEK) {
        l->done = guest_read(l->bytes, l->addr, len) ? len : 0;
    } else if (l->kind == LETTER_MAPPING) {
        l->done = aspace_nth(l->addr, (struct mapping *)l->bytes) ? sizeof(struct mapping) : 0;
    } else if (l->kind == LETTER_CHANGES) {
        const uint64_t *file = (const uint64_t *)l->bytes;
        writers_told(t, file[0], file[1], flags);
        l->done = len;
    } else {
        l->done = forced_write(l->addr, l->bytes, len, l->kind == LETTER_POKE) ? len : 0;
        if (l->done && the_mode->trace_wrote) the_mode->trace_wrote(t, l->addr, len, flags);
    }
    __atomic_store_n(&l->kind, LETTER_ANSWERED, __ATOMIC_RELEASE);
    trace_futex_wake(&l->kind);
}

static void answer_in_stop(struct thread *t, struct trace_letter *l) {
    if (the_mode->trace_turn) the_mode->trace_turn(t, true);
    answer(t, l, 0);
    if (the_mode->trace_turn) the_mode->trace_turn(t, false);
}

static bool is_asked(const struct trace_letter *l) {
    uint32_t kind = __atomic_load_n(&l->kind, __ATOMIC_ACQUIRE);
    return kind == LETTER_PEEK || kind == LETTER_MAPPING || kind == LETTER_WRITE || kind == LETTER_POKE ||
           kind == LETTER_CHANGES;
}

/* ---- being traced ---- */

static void look(struct thread *t) {
    t->kicked = false;
    if (t->tracee) return;
    if (!trace_table()) return;
    t->tracee = trace_find(t->tid);
    if (!t->tracee || t->tracee->visits) return;
    signals_catch_all(t->process);
    __atomic_store_n(&t->tracee->noticed, true, __ATOMIC_RELEASE);
}

/* What is asked of its memory at a safepoint. */
static void serve(struct thread *t, uint8_t flags) {
    if (is_asked(&t->tracee->letter)) answer(t, &t->tracee->letter, flags);
    if (t->tracee->visits) t->tracee = NULL;
}

void traced_answer(struct thread *t) {
    if (t->kicked) look(t);
    if (!t->tracee || !is_asked(&t->tracee->letter)) return;
    if (the_mode->trace_turn) the_mode->trace_turn(t, true);
    serve(t, EVF_AT_GATE);
    if (the_mode->trace_turn) the_mode->trace_turn(t, false);
}

static void forget(struct thread *t) {
    trace_free(t->tracee);
    t->tracee = NULL;
}

long traced_me(struct thread *t) {
    int parent = (int)SYS(getppid);
    if (t->tracee || t->traced_by_outsider) return -EPERM;
    if (!trace_is_member(parent)) { /* who would trace us is no part of the sphere: it never will */
        t->traced_by_outsider = true;
        return 0;
    }
    struct tracee *e = trace_claim(t->tid, t->tgid, parent);
    if (!e) return -EPERM;
    trace_publish(e);
    t->tracee = e;
    signals_catch_all(t->process);
    trace_ring(parent); /* it waits for us as for any child */
    return 0;
}

bool traced_undoes(struct thread *t) {
    bool for_us = t->kicked || t->held_came;
    t->held_came = false;
    if (!for_us || signals_is_waiting(t)) return false;
    if (t->restore_mask) signals_end_wait(t);
    return true;
}

/* ---- stopping ---- */

/* Tells the tracer that there is something to wait for. */
static void report(const struct tracee *e) {
    SYS(kill, e->tracer, SIGCHLD_);
    trace_ring(e->tracer);
}

/* Nobody is there any more to say what becomes of it. */
static void go_alone(struct tracee *e, int unheard) {
    if (e->options & PTRACE_O_EXITKILL) SYS(kill, e->tgid, 9);
    e->how = RESUME_DETACH;
    e->signal = e->reported ? 0 : unheard;
}

/* unheard: the signal that it is stopped for, which is delivered if the tracer ends without having been told. */
static void await_word(struct thread *t, struct tracee *e, int unheard) {
    for (;;) {
        uint32_t seen = __atomic_load_n(&e->bell, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == TRACEE_RUNS) return;
        if (is_asked(&e->letter)) answer_in_stop(t, &e->letter);
        trace_futex_wait(&e->bell, seen, LOOK_AFTER_MS);
        if (seen == __atomic_load_n(&e->bell, __ATOMIC_ACQUIRE) && task_is_gone(e->tracer)) {
            go_alone(e, unheard);
            return;
        }
    }
}

struct stop {
    int status;
    int signo;         /* it is about to be delivered; 0: none is */
    uint8_t flags;     /* EVF_* of where it is */
    uint64_t orig_rax; /* of the call that is under way, or ORIG_RAX_NONE */
    bool at_call;      /* the call is about to be made */
    int skips_to;      /* numbers from -1 down to this one mean that it is not */
    bool emulated;     /* and the tracer wants it not to be */
    bool aborted;      /* it was tried, and will be made again: registers are back at it */
    bool is_group_stop;
};

static void show(const struct thread *t, struct tracee *e, const struct stop *s) {
    trace_regs_show(t, s->orig_rax, &e->regs);
    if (s->at_call || s->aborted) {
        e->regs.rax = s->at_call ? (uint64_t)-ENOSYS : (uint64_t)-ERESTARTSYS_;
        if (s->aborted) e->regs.rip += 2;
        e->regs.rcx = e->regs.rip;
        e->regs.r11 = e->regs.eflags;
    }
    if (sigframe_extended_size() <= TRACE_EXTENDED) sigframe_save_extended(e->extended);
    e->sigmask = t->sigmask;
    e->regs_changed = e->extended_changed = e->mask_changed = false;
}

static bool is_skipped(const struct stop *s, int nr) { return nr < 0 && nr >= s->skips_to; }

/* Whether the call that it is at is to be made, after what the tracer has done to its registers. */
static bool take(struct thread *t, struct tracee *e, const struct stop *s) {
    struct user_regs r = e->regs;
    bool made = s->at_call && !s->emulated && r.rip == t->tb->pc && !is_skipped(s, (int)r.orig_rax);
    if (made) r.rax = r.orig_rax;
    if (r.orig_rax != ORIG_RAX_NONE && r.rax == (uint64_t)-ERESTARTSYS_) {
        r.rip -= 2;
        r.rax = r.orig_rax;
    }
    if (e->regs_changed || (s->at_call && !made)) trace_regs_take(t, &r);
    if (e->mask_changed) t->sigmask = e->sigmask & ~(SIG_BIT(9) | SIG_BIT(SIGSTOP_));
    if (e->extended_changed) sigframe_set_extended(e->extended);
    return made;
}

void traced_step(struct thread *t) {
    if (t->tb->trap_flag) return; /* it traps anyway */
    t->tb->trap_flag = true;
    t->trace_step = true;
}

void traced_step_over(struct thread *t) {
    if (t->trace_step) t->tb->trap_flag = t->tb->stepped = false;
    t->trace_step = false;
}

static void step_on(struct thread *t) {
    trace_watch_begin(t);
    traced_step(t);
}

/* A step is over. True: only the tracee itself wanted it, and it has come to nothing that is watched. For a recording that is a
 * stop like others. ran: the step was an instruction and no call. */
static bool steps_on(struct thread *t, uint8_t flags, bool ran) {
    struct tracee *e = t->tracee;
    if (!t->trace_step) return false;
    uint64_t why = trace_watch_hits(t, ran) | (steps(e) ? DR6_STEP : 0);
    if (why) {
        e->debug_regs[6] = why;
        return false;
    }
    traced_step_over(t);
    if (the_mode->trace_stop) the_mode->trace_stop(t, flags);
    if (the_mode->trace_turn) the_mode->trace_turn(t, true);
    if (the_mode->trace_go) the_mode->trace_go(t, false, EVF_STEP, 0);
    step_on(t);
    return true;
}

/* Why a step stops it; elsewhere: of no interest. */
static int step_code(const struct thread *t, int otherwise) {
    return t->trace_step && !steps(t->tracee) ? TRAP_HWBKPT_ : otherwise;
}

/* Stops until the tracer lets go. True: the call that it is at is to be made. */
static bool stop(struct thread *t, const struct stop *s) {
    struct tracee *e = t->tracee;
    cache_idle(t->tb);
    traced_step_over(t);
    show(t, e, s);
    if (the_mode->trace_stop) the_mode->trace_stop(t, s->flags);
    e->status = s->status;
    e->has_siginfo = !s->is_group_stop || e->seized;
    e->reported = false;
    __atomic_store_n(&e->state, TRACEE_STOPPED, __ATOMIC_SEQ_CST);
    report(e);
    await_word(t, e, s->signo);
    if (the_mode->trace_turn) the_mode->trace_turn(t, true);
    bool made = take(t, e, s);
    bool changed = e->regs_changed || e->extended_changed || e->mask_changed || (s->at_call && !made);
    t->trace_signal = e->signal;
    uint8_t flags = (made ? EVF_AT_GATE : 0) | (goes_stepwise(e) ? EVF_STEP : 0);
    if (the_mode->trace_go) the_mode->trace_go(t, changed, flags, (uint16_t)t->trace_signal);
    if (goes_stepwise(e)) step_on(t);
    if (e->how == RESUME_DETACH) forget(t);
    return made;
}

/* For a reason that is no signal of the program's own; nr: the call that it is behind, or ORIG_RAX_NONE. */
static void stop_plain(struct thread *t, int status, uint8_t flags, uint64_t nr) {
    struct tracee *e = t->tracee;
    struct stop s = {.status = status, .flags = flags, .orig_rax = nr};
    int signo = status >> 8 & 0x7f, event = status >> 16;
    e->info = (struct siginfo_raw){.signo = signo, .code = event ? signo | event << 8 : step_code(t, 0)};
    if (event) e->info.w[0] = (uint32_t)t->tid;
    e->call = (struct syscall_info){.arch = ARCH_X86_64, .pc = t->tb->pc, .sp = t->tb->gpr[RSP]};
    stop(t, &s);
}

/* A step that did not end in a trap: it was a call, or went into a handler. */
static void stop_step(struct thread *t, uint64_t nr) {
    if (!steps_on(t, EVF_AFTER, false)) stop_plain(t, STOPPED_BY(SIGTRAP_), EVF_AFTER, nr);
}

void traced_in_handler(struct thread *t) {
    if (t->tracee && t->trace_step) stop_step(t, ORIG_RAX_NONE);
}

static void stop_for_tracer(struct thread *t, uint8_t flags) {
    stop_plain(t, STOPPED_BY(SIGTRAP_) | PTRACE_EVENT_STOP << 16, flags, ORIG_RAX_NONE);
}

/* ---- stops of the whole process ---- */

/* Somebody has continued the process since it stopped: SIGCONT has come to us, or waits in the kernel. */
static bool is_continued(const struct thread *t) {
    uint64_t set = 0;
    for (int i = 0; i < t->n_pending; i++)
        if (t->pending[i].info.signo == SIGCONT_) return true;
    SYS(rt_sigpending, &set, 8);
    return set & SIG_BIT(SIGCONT_);
}

/* The kernel keeps it stopped, all threads of it; whoever continues it tells the kernel. False: only the tracer has. */
static bool stay_stopped(struct thread *t) {
    struct tracee *e = t->tracee;
    uint64_t cont = SIG_BIT(SIGCONT_);
    __atomic_store_n(&e->listens, true, __ATOMIC_SEQ_CST);
    if (!is_continued(t) && !(e->wants & TRACE_WANT_TRAP)) SYS(tgkill, t->tgid, t->tid, SIGSTOP_);
    __atomic_store_n(&e->listens, false, __ATOMIC_SEQ_CST);
    bool interrupted = __atomic_fetch_and(&e->wants, ~(uint32_t)TRACE_WANT_TRAP, __ATOMIC_SEQ_CST) & TRACE_WANT_TRAP;
    if (e->was_interrupted) SYS(rt_sigtimedwait, &cont, 0, &(struct __kernel_timespec){0}, 8);
    e->was_interrupted = false;
    return !interrupted;
}

static void show_group_stop(struct thread *t, int signo, uint8_t flags) {
    struct tracee *e = t->tracee;
    struct stop s = {.flags = flags, .orig_rax = ORIG_RAX_NONE, .is_group_stop = true};
    s.status = STOPPED_BY(signo) | (e->seized ? PTRACE_EVENT_STOP << 16 : 0);
    e->info = (struct siginfo_raw){.signo = signo, .code = signo | PTRACE_EVENT_STOP << 8};
    e->info.w[0] = (uint32_t)t->tid;
    e->call = (struct syscall_info){.arch = ARCH_X86_64, .pc = t->tb->pc, .sp = t->tb->gpr[RSP]};
    stop(t, &s);
}

static void stop_with_group(struct thread *t, int signo, uint8_t flags) {
    show_group_stop(t, signo, flags);
    while (t->tracee && t->tracee->how == RESUME_LISTEN) {
        if (stay_stopped(t))
            stop_for_tracer(t, EVF_AFTER);
        else
            show_group_stop(t, signo, EVF_AFTER);
    }
    if (!t->tracee && !is_continued(t))
        SYS(tgkill, t->tgid, t->tid, SIGSTOP_); /* nobody traces it, and nobody continued it */
}

bool traced_group_stop(struct thread *t, int signo) {
    if (!t->tracee || t->tracee->visits) return false;
    for (struct thread *other = threads_first(); other; other = other->next) {
        struct tracee *e = other->tracee;
        if (other == t || !other->in_use || !e || e->visits || other->tgid != t->tgid) continue;
        e->group_stop = (uint8_t)signo;
        __atomic_or_fetch(&e->wants, TRACE_WANT_GROUP_STOP, __ATOMIC_SEQ_CST);
        trace_kick(other->tgid, other->tid);
    }
    stop_with_group(t, signo, EVF_AFTER);
    return true;
}

/* Another thread was stopped, or the tracer found the process so. Signals are held, as where a signal of its own stops it. */
static void join_group_stop(struct thread *t, uint8_t flags) {
    signals_block_all();
    stop_with_group(t, t->tracee->group_stop, flags);
    signals_apply_mask(t);
}

/* The tracer has seen SIGSTOP, and says what becomes of it. */
static void stop_for_sigstop(struct thread *t, uint8_t flags) {
    struct pending_signal s = {.info = {.signo = SIGSTOP_, .code = t->tracee->stop_code}};
    s.info.w[0] = (uint32_t)t->tracee->stop_sender;
    if (traced_signal(t, &s, &flags)) signals_deliver_chosen(t, &s);
}

void traced_safepoint(struct thread *t, uint8_t flags) {
    if (t->kicked) look(t);
    while (t->tracee) {
        uint32_t wants = __atomic_exchange_n(&t->tracee->wants, 0, __ATOMIC_ACQ_REL);
        serve(t, flags);
        if (!wants) return;
        if (wants & TRACE_WANT_SIGSTOP)
            stop_for_sigstop(t, flags);
        else if (wants & TRACE_WANT_GROUP_STOP)
            join_group_stop(t, flags);
        else
            stop_for_tracer(t, flags);
        flags = EVF_AFTER;
    }
}

/* ---- calls ---- */

static int call_status(const struct tracee *e) {
    return STOPPED_BY(SIGTRAP_ | (e->options & PTRACE_O_TRACESYSGOOD ? 0x80 : 0));
}

static bool stop_before_call(struct tblock *tb) {
    struct tracee *e = tb->thread->tracee;
    struct stop s = {
        .status = call_status(e), .flags = EVF_AT_GATE, .orig_rax = tb->gpr[RAX], .at_call = true, .skips_to = -1};
    s.emulated = emulates_calls(e);
    e->info = (struct siginfo_raw){.signo = SIGTRAP_, .code = SIGTRAP_ | 0x80};
    e->call =
        (struct syscall_info){.op = PTRACE_SYSCALL_INFO_ENTRY, .arch = ARCH_X86_64, .pc = tb->pc, .sp = tb->gpr[RSP]};
    e->call.v[0] = tb->gpr[RAX];
    gate_args(tb, &e->call.v[1]);
    e->message = PTRACE_EVENTMSG_SYSCALL_ENTRY;
    return stop(tb->thread, &s);
}

static bool stop_before_exit(struct tblock *tb) {
    struct tracee *e = tb->thread->tracee;
    uint64_t nr = tb->gpr[RAX];
    if (!e || !(e->options & PTRACE_O_TRACEEXIT) || (nr != __NR_exit && nr != __NR_exit_group)) return true;
    struct stop s = {.status = STOPPED_BY(SIGTRAP_) | PTRACE_EVENT_EXIT << 16,
                     .flags = EVF_AT_GATE,
                     .orig_rax = nr,
                     .at_call = true};
    e->info = (struct siginfo_raw){.signo = SIGTRAP_, .code = SIGTRAP_ | PTRACE_EVENT_EXIT << 8};
    e->call = (struct syscall_info){.arch = ARCH_X86_64, .pc = tb->pc, .sp = tb->gpr[RSP]};
    e->message = (tb->gpr[RDI] & 0xff) << 8;
    return stop(tb->thread, &s);
}

static bool stop_after_call(struct thread *t, struct stop *s, int64_t ret) {
    struct tracee *e = t->tracee;
    if (!e || e->how != RESUME_SYSCALL) return false;
    s->status = call_status(e);
    e->info = (struct siginfo_raw){.signo = SIGTRAP_, .code = SIGTRAP_ | 0x80};
    e->call = (struct syscall_info){
        .op = PTRACE_SYSCALL_INFO_EXIT, .arch = ARCH_X86_64, .pc = t->tb->pc, .sp = t->tb->gpr[RSP]};
    e->call.v[0] = (uint64_t)ret;
    ((uint8_t *)&e->call.v[1])[0] = sys_failed(ret);
    e->message = PTRACE_EVENTMSG_SYSCALL_EXIT;
    stop(t, s);
    return true;
}

/* The call was not made; its end is shown all the same to a tracer that asks for it now, or for a step, which leads no further. */
static void stop_behind_skipped(struct tblock *tb, uint64_t nr) {
    struct thread *t = tb->thread;
    struct stop s = {.flags = EVF_AFTER, .orig_rax = nr};
    if (t->tracee && t->tracee->how == RESUME_STEP)
        stop_plain(t, STOPPED_BY(SIGTRAP_), EVF_AFTER, nr);
    else
        stop_after_call(t, &s, (int64_t)tb->gpr[RAX]);
}

bool traced_gate(struct tblock *tb, gaddr next) {
    struct thread *t = tb->thread;
    if (t->kicked) look(t);
    if (!t->tracee) return true;
    serve(t, EVF_AT_GATE);
    if (!t->tracee) return true;
    if (t->tracee->wants) {
        gate_retry(tb, next);
        traced_safepoint(t, EVF_AT_GATE | EVF_RETRY);
        return false;
    }
    uint64_t nr = tb->gpr[RAX];
    bool skips = emulates_calls(t->tracee), shows = skips || t->tracee->how == RESUME_SYSCALL;
    if (shows && !stop_before_call(tb)) {
        bool called_off = t->tracee && (int)t->tracee->regs.orig_rax == -1;
        if (skips || called_off) stop_behind_skipped(tb, called_off ? ORIG_RAX_NONE : nr);
        return false;
    }
    return stop_before_exit(tb);
}

bool traced_is_asked(const struct thread *t) { return t->tracee && (t->tracee->options & PTRACE_O_TRACESECCOMP); }

bool traced_at_filter(struct tblock *tb, uint16_t message) {
    struct tracee *e = tb->thread->tracee;
    uint64_t nr = tb->gpr[RAX];
    struct stop s = {.status = STOPPED_BY(SIGTRAP_) | PTRACE_EVENT_SECCOMP << 16,
                     .flags = EVF_AT_GATE,
                     .orig_rax = nr,
                     .at_call = true,
                     .skips_to = INT32_MIN};
    e->info = (struct siginfo_raw){.signo = SIGTRAP_, .code = SIGTRAP_ | PTRACE_EVENT_SECCOMP << 8};
    e->info.w[0] = (uint32_t)tb->thread->tid;
    e->call =
        (struct syscall_info){.op = PTRACE_SYSCALL_INFO_SECCOMP, .arch = ARCH_X86_64, .pc = tb->pc, .sp = tb->gpr[RSP]};
    e->call.v[0] = nr;
    gate_args(tb, &e->call.v[1]);
    e->call.v[7] = message;
    e->message = message;
    if (stop(tb->thread, &s)) return true;
    stop_behind_skipped(tb, ORIG_RAX_NONE);
    return false;
}

/* What has happened during the call. */
static void stop_for_event(struct thread *t, uint64_t nr) {
    struct tracee *e = t->tracee;
    struct stop s = {.status = STOPPED_BY(SIGTRAP_) | t->trace_event << 16, .flags = EVF_AFTER, .orig_rax = nr};
    e->info = (struct siginfo_raw){.signo = SIGTRAP_, .code = SIGTRAP_ | t->trace_event << 8};
    e->call = (struct syscall_info){.arch = ARCH_X86_64, .pc = t->tb->pc, .sp = t->tb->gpr[RSP]};
    e->message = t->trace_message;
    t->trace_event = 0;
    stop(t, &s);
}

/* The end of a call is shown once: to who asked for it, or as a step, unless PTRACE_SYSEMU has shown the call instead. */
void traced_after_call(struct thread *t, uint64_t nr) {
    if (t->trace_event && t->tracee) stop_for_event(t, nr);
    if (nr == __NR_rt_sigreturn) nr = ORIG_RAX_NONE; /* in no call, as the program was at the signal */
    struct stop s = {.flags = EVF_AFTER, .orig_rax = nr};
    if (t->tracee && t->tracee->how == RESUME_SYSCALL)
        stop_after_call(t, &s, (int64_t)t->tb->gpr[RAX]);
    else if (t->tracee && t->trace_step && t->tracee->how != RESUME_SYSEMU_STEP)
        stop_step(t, nr);
    traced_safepoint(t, EVF_AFTER);
}

bool traced_aborted(struct thread *t, uint64_t nr) {
    struct stop s = {.flags = EVF_AT_GATE | EVF_RETRY, .orig_rax = nr, .aborted = true};
    return stop_after_call(t, &s, -ERESTARTSYS_);
}

/* ---- signals ---- */

static bool is_step_trap(const struct pending_signal *s) {
    return s->is_fault && s->info.signo == SIGTRAP_ && s->info.code == TRAP_TRACE_;
}

bool traced_signal(struct thread *t, struct pending_signal *s, uint8_t *flags) {
    if (t->kicked) look(t);
    struct tracee *e = t->tracee;
    if (!e || e->visits) return true;
    int signo = s->info.signo;
    uint8_t where = s->is_fault ? EVF_FAULT : *flags & EVF_AT_GATE ? EVF_AT_GATE | EVF_RETRY : *flags;
    if (is_step_trap(s)) {
        if (steps_on(t, where, true)) return false;
        s->info.code = step_code(t, s->info.code);
    }
    struct stop st = {.status = STOPPED_BY(signo), .signo = signo, .flags = where, .orig_rax = ORIG_RAX_NONE};
    e->info = s->info;
    e->message = 0;
    e->call = (struct syscall_info){.arch = ARCH_X86_64, .pc = t->tb->pc, .sp = t->tb->gpr[RSP]};
    stop(t, &st);
    int chosen = t->trace_signal;
    if (chosen == signo) {
        s->info = e->info;
    } else if (chosen) {
        s->info = (struct siginfo_raw){.signo = chosen};
        s->info.w[0] = (uint32_t)e->tracer;
        s->is_fault = false;
    }
    if (!s->is_fault) *flags = EVF_AFTER;
    return chosen != 0;
}

/* ---- children ---- */

#define CHILD_WAIT_US 100

struct trace_follow traced_follows(const struct thread *t, uint64_t flags) {
    struct tracee *e = t->tracee;
    struct trace_follow f = {0};
    if (!e || (flags & CLONE_UNTRACED)) return f;
    f.shows_end = (flags & CLONE_VFORK) && (e->options & PTRACE_O_TRACEVFORKDONE);
    int event = flags & CLONE_VFORK             ? PTRACE_EVENT_VFORK
                : (flags & CSIGNAL) == SIGCHLD_ ? PTRACE_EVENT_FORK
                                                : PTRACE_EVENT_CLONE;
    if (!(e->options & 1u << event)) return f;
    f.event = event;
    f.tracer = e->tracer;
    f.parent = e;
    e->born = 0;
    f.options = e->options;
    f.seized = e->seized;
    return f;
}

static void be_followed(struct thread *child, const struct trace_follow *f) {
    struct tracee *e = trace_claim(child->tid, child->tgid, f->tracer);
    if (!e) return;
    e->options = f->options;
    e->seized = f->seized;
    e->wants = f->seized ? TRACE_WANT_TRAP : TRACE_WANT_SIGSTOP;
    trace_publish(e);
    child->tracee = e;
    signals_catch_all(child->process);
}

void traced_born(struct thread *child, const struct trace_follow *f) {
    if (!f->tracer) return;
    be_followed(child, f);
    __atomic_store_n(&f->parent->born, child->tid, __ATOMIC_RELEASE);
}

static void note_event(struct thread *t, int event, int tid) {
    t->trace_event = event;
    t->trace_message = (uint64_t)tid;
}

/* The tracer, once it hears of the child, may ask for it. Looking for the child's entry would not do: the tracer may be done with it. */
static void await_born(const struct tracee *parent, int tid) {
    struct __kernel_timespec nap = {0, CHILD_WAIT_US * 1000};
    while (__atomic_load_n(&parent->born, __ATOMIC_ACQUIRE) != tid && !task_is_over(tid)) SYS(nanosleep, &nap, 0);
}

void traced_has_child(struct thread *t, const struct trace_follow *f, int tid) {
    if (!f->tracer || !t->tracee) return;
    await_born(f->parent, tid);
    note_event(t, f->event, tid);
}

bool traced_watches_vfork(const struct trace_follow *f) { return f->event == PTRACE_EVENT_VFORK || f->shows_end; }

void traced_vforked(struct thread *t, const struct trace_follow *f, int tid, uint32_t *not_left) {
    if (f->event && t->tracee) {
        if (the_mode->trace_turn) the_mode->trace_turn(t, true);
        await_born(f->parent, tid);
        note_event(t, f->event, tid);
        t->stopped_inside = true;
        stop_for_event(t, t->tb->gpr[RAX]);
        if (the_mode->trace_turn) the_mode->trace_turn(t, false);
    }
    while (__atomic_load_n(not_left, __ATOMIC_ACQUIRE)) trace_futex_wait(not_left, 1, LOOK_AFTER_MS);
    if (f->shows_end && t->tracee) note_event(t, PTRACE_EVENT_VFORK_DONE, tid);
}

/* ---- ends ---- */

/* The kernel tells a parent of the end of its child, and nobody else. */
static void end(struct tracee *e, int status) {
    bool by_kernel = e->tid == e->tgid && SYS(getppid) == e->tracer;
    if (by_kernel || task_is_gone(e->tracer)) {
        trace_free(e);
        return;
    }
    e->status = status;
    e->reported = false;
    __atomic_store_n(&e->state, TRACEE_ENDED, __ATOMIC_SEQ_CST);
    report(e);
}

void traced_thread_ends(struct thread *t, int status) {
    if (t->tracee) end(t->tracee, status);
    t->tracee = NULL;
}

/* Those whom it traces and who are not to live without it. */
static void end_tracees(int tracer) {
    struct tracee *e;
    for (uint32_t i = 0; (e = trace_next(&i, tracer));)
        if ((e->options & PTRACE_O_EXITKILL) && e->state != TRACEE_ENDED) SYS(kill, e->tgid, 9);
}

void traced_process_ends(struct thread *t, int status) {
    if (!trace_table_mapped()) return;
    end_tracees(t->tgid);
    for (struct thread *other = threads_first(); other; other = other->next)
        if (other->in_use && other->tracee && other->tgid == t->tgid) traced_thread_ends(other, status);
    trace_remove_member(t->tgid);
}

/* ---- exec ---- */

void traced_after_exec(struct thread *t) {
    if (!trace_table()) return;
    t->tracee = trace_find(t->tid);
    struct tracee *e = t->tracee;
    if (!e) return;
    signals_catch_all(t->process);
    memset(e->debug_regs, 0, sizeof e->debug_regs);
    if (e->options & PTRACE_O_TRACEEXEC) {
        e->message = (uint64_t)t->tid;
        stop_plain(t, STOPPED_BY(SIGTRAP_) | PTRACE_EVENT_EXEC << 16, EVF_AFTER, __NR_execve);
        if (t->tracee) traced_after_call(t, __NR_execve);
        return;
    }
    traced_after_call(t, __NR_execve);
    if (t->tracee && !t->tracee->seized) stop_plain(t, STOPPED_BY(SIGTRAP_), EVF_AFTER, __NR_execve);
}

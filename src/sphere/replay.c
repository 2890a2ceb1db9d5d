#include "sphere/replay.h"

#include <linux/prctl.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/debug.h"
#include "sphere/legacy.h"
#include "sphere/replay_parts.h"
#include "sphere/runtime.h"
#include "sphere/schedule.h"
#include "sphere/seccomp.h"
#include "sphere/signals.h"
#include "sphere/sys/special.h"

#define SIGKILL_ 9

static uint64_t flags_at_call(const struct tblock *tb) { return tb->rflags | (tb->trap_flag ? RFLAGS_TF : 0); }

/* False: a filter of the program's has answered the call, as it did then. */
static bool filters_allow(struct tblock *tb, const struct event *e, uint64_t nr, uint64_t a[6], gaddr next,
                          uint64_t flags) {
    struct thread *t = tb->thread;
    long verdict = seccomp_apply(tb, &nr, a);
    if (verdict == SECCOMP_ALLOWED || verdict == SECCOMP_DELIVERED) return verdict == SECCOMP_ALLOWED;
    bool answered = e->kind == EV_SYSCALL && (e->flags & EVF_ANSWERED);
    if (verdict == SECCOMP_ASKED && !answered) return true;
    struct ev_syscall s = replay_take_call(t, e, nr, a);
    if (verdict != SECCOMP_ASKED) replay_check_result(t, nr, s.ret, verdict);
    if (answered) replay_take_outs(t, s.outs);
    gate_finish(tb, next, flags, s.ret);
    replay_arm(t);
    return false;
}

/* A signal, or a checkpoint, in front of the call, which is not made now. */
static bool is_before_call(const struct event *e) {
    return (e->flags & EVF_AT_GATE) && (e->kind == EV_SIGNAL || e->kind == EV_CHECKPOINT);
}

static void give_call_up(struct tblock *tb, const struct event *e, gaddr next) {
    struct thread *t = tb->thread;
    gate_retry(tb, next);
    if (unlikely(debug_is_on)) debug_call_undone(t);
    if (e->kind == EV_SIGNAL)
        replay_deliver(t, e);
    else
        replay_pass_checkpoint(t, e);
    replay_arm(t);
}

static void answer_call(struct tblock *tb) {
    struct thread *t = tb->thread;
    t->awaits = AWAITS_CALL;
    uint64_t nr = tb->gpr[RAX], a[6];
    gate_args(tb, a);
    gaddr next = tb->pc;
    uint64_t flags = flags_at_call(tb);
    const struct event *e = replay_next(t);
    if (unlikely(is_before_call(e))) {
        give_call_up(tb, e, next);
        return;
    }
    while (unlikely(e->kind == EV_STOP) && (e->flags & EVF_AT_GATE)) {
        if (e->flags & EVF_RETRY) gate_retry(tb, next);
        if (!replay_stop(t, e).calls) {
            replay_arm(t);
            return;
        }
        nr = tb->gpr[RAX];
        gate_args(tb, a);
        e = replay_next(t);
        if (is_before_call(e)) { /* it came while the tracer had a look at the call */
            give_call_up(tb, e, next);
            return;
        }
    }
    if (unlikely(t->seccomp.mode) && !filters_allow(tb, e, nr, a, next, flags)) return;
    switch (nr) {
    case __NR_exit:
    case __NR_exit_group: replay_exit(t); break;
    case __NR_fork:
    case __NR_vfork:
    case __NR_clone:
    case __NR_clone3: replay_clone(tb, nr, a, next, flags); break;
    case __NR_execve:
    case __NR_execveat: replay_exec(tb, nr, a, next, flags); break;
    case __NR_rt_sigreturn:
        replay_take_call(t, e, nr, a);
        signals_sigreturn(tb, a);
        replay_arm(t);
        break;
    default:
        if (unlikely(e->kind == EV_END || e->kind == EV_EXIT)) replay_death(t, SIGKILL_); /* it kills itself */
        replay_ordinary(tb, e, nr, a, next, flags);
    }
}

static void on_syscall(struct tblock *tb) {
    struct thread *t = tb->thread;
    if (unlikely(debug_is_on)) {
        if (!debug_call_begins(t)) return;
        debug_op(t, true);
    }
    if (debug_is_diverted) {
        uint64_t nr = tb->gpr[RAX], a[6], flags = flags_at_call(tb);
        gaddr next = tb->pc;
        gate_args(tb, a);
        gate_finish(tb, next, flags, debug_call(tb, nr, a));
        replay_set_budget(t);
        return;
    }
    answer_call(tb);
}

void replay_enter_call(void) {
    struct tblock *tb = thread_self()->tb;
    tb->thread->debugged.call = tb->gpr[RAX];
    answer_call(tb);
    engine_run(tb);
}

void replay_enter_stop(void) {
    struct tblock *tb = thread_self()->tb;
    if (replay_rest_of_stop(tb->thread).calls)
        answer_call(tb);
    else
        replay_arm(tb->thread);
    engine_run(tb);
}

static long on_legacy(struct tblock *tb, uint32_t nr, const uint64_t a[6]) {
    struct thread *t = tb->thread;
    struct ev_syscall s = replay_take_call(t, replay_next(t), LEGACY_CALL + nr, a);
    replay_take_outs(t, s.outs);
    replay_arm(t);
    return s.ret;
}

static const struct event *expect(struct thread *t, enum event_kind kind) {
    const struct event *e = stream_peek();
    if (!e) replay_cut_off();
    if (e->kind != kind) replay_diverged(t, e, "begin of a program", e->kind, kind);
    return e;
}

static void show_as(const struct ev_start *s) {
    char comm[16];
    memcpy(comm, s->comm, sizeof comm);
    comm[15] = '\0';
    SYS(prctl, PR_SET_NAME, comm, 0, 0, 0);
}

/* Which of the files it is that is executed, by the place of its program headers. */
static void find_executable(const struct ev_start *s) {
    enum { AT_PHDR = 3 };
    uint64_t pair[2];
    struct mapping m;
    for (gaddr at = s->auxv_start; at < s->auxv_end && guest_read(pair, at, sizeof pair) && pair[0]; at += sizeof pair) {
        if (pair[0] != AT_PHDR || !aspace_find(pair[1], &m)) continue;
        the_runtime.exe_dev = m.file.dev;
        the_runtime.exe_ino = m.file.ino;
    }
}

/* Nobody waits for the processes of a replay, and that the output has no reader or grows too large is not what they end of. */
static void ignore_signals_of_ours(void) {
    static const int ignored[] = {17 /* SIGCHLD */, 13 /* SIGPIPE */, 25 /* SIGXFSZ */};
    struct ksigaction ignore = {.handler = 1};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) SYS(rt_sigaction, ignored[i], &ignore, 0, 8);
}

void replay_start(struct thread *t, uint64_t stream) {
    ignore_signals_of_ours();
    if (!stream_attach_reader(fd_own() + 1, stream)) { /* killed, or the recording ended, before it had begun */
        if (stream == 0) die("the recording is empty");
        replay_note_cut();
        SYS(exit_group, 0);
    }
    schedule_start(t);
    struct ev_start s = *(const struct ev_start *)(expect(t, EV_START) + 1);
    stream_take();
    show_as(&s);
    for (uint32_t i = 0; i < s.n_maps; i++) {
        replay_restore_map(t, (const struct ev_map *)(expect(t, EV_MAP) + 1), 0);
        stream_take();
    }
    for (uint32_t i = 0; i < s.n_memory; i++) {
        replay_put(t, expect(t, EV_MEMORY));
        stream_take();
    }
    find_executable(&s);
    aspace_put_brk(s.brk_start, s.brk_start);
    struct process *p = t->process;
    memset(p->action, 0, sizeof p->action);
    for (int signo = 1; signo <= NSIG_MAX; signo++)
        if (s.ignored & SIG_BIT(signo)) p->action[signo].handler = 1;
    t->tid = t->tgid = p->pid = (int)s.pid;
    t->sigmask = s.sigmask;
    t->tb->pc = s.pc;
    t->tb->gpr[RSP] = s.rsp;
    t->tb->rflags = s.rflags;
    s.exe[sizeof s.exe - 1] = 0;
    fmt_into(the_runtime.exe_path, sizeof the_runtime.exe_path, "%s", s.exe);
    debug_begin(t);
    replay_go_on(t);
}

void replay_go_on(struct thread *t) {
    replay_arm(t);
    replay_stay_at_tick(t); /* who begins with a checkpoint that was taken there */
    engine_run(t->tb);
}

const struct mode mode_replay = {
    .name = "replay",
    .policy = &policy_order,
    .same_fpu = true,
    .syscall = on_syscall,
    .tick_budget = replay_tick_budget,
    .insn = replay_insn,
    .x87_pointers = replay_x87_pointers,
    .legacy = on_legacy,
    .fault = replay_fault,
    .before_signal = replay_before_signal,
    .signal = replay_signal,
    .thread_killed = replay_thread_killed,
    .death = replay_death,
    .acquire = replay_acquire,
    .copy = replay_copy,
    .access = replay_access,
};

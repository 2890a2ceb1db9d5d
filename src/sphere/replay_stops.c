#include "sphere/replay_parts.h"

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "sphere/borrowed.h"
#include "sphere/debug.h"
#include "sphere/event_log.h"
#include "sphere/file_changes.h"
#include "sphere/memory_hash.h"
#include "sphere/recorded_insn.h"
#include "sphere/runtime.h"
#include "sphere/sigframe.h"
#include "sphere/signals.h"
#include "sphere/snapshot.h"
#include "sphere/trace_regs.h"
#include "sphere/traced.h"

#define FOREVER (1ull << 62)
#define SIGBUS_ 7

static bool is_at_tick(const struct event *e) {
    if (e->kind == EV_PREEMPT) return true;
    bool moves = e->kind == EV_SIGNAL || e->kind == EV_RELEASE || e->kind == EV_CHECKPOINT || e->kind == EV_STOP ||
                 e->kind == EV_POKE;
    return moves && !(e->flags & (EVF_AFTER | EVF_AT_GATE | EVF_FAULT));
}

void replay_set_budget(struct thread *t) {
    uint64_t budget = FOREVER;
    if (debug_is_diverted) {
        ticks_set_budget(t->tb, debug_budget(t, budget));
        return;
    }
    const struct event *e = stream_peek();
    if (!e) replay_cut_off();
    if (e->thread == t->number && is_at_tick(e)) {
        if (e->ticks < ticks_total(t->tb)) replay_diverged(t, e, "tick has passed", e->ticks, ticks_total(t->tb));
        budget = e->ticks - ticks_total(t->tb);
    }
    if (unlikely(e->thread == t->number && replay_is_killed(e))) budget = MIN(budget, replay_budget_of_killed(t, e));
    if (e->thread == t->number && e->kind == EV_FAULT && e->code == SIGBUS_)
        shared_expect_bus(((const struct ev_signal *)(e + 1))->cr2);
    if (unlikely(debug_is_on)) budget = debug_budget(t, budget);
    ticks_set_budget(t->tb, budget);
}

void replay_deliver(struct thread *t, const struct event *e) {
    replay_verify(t, e, EV_SIGNAL, "signal");
    const struct ev_signal *v = (const struct ev_signal *)(e + 1);
    struct pending_signal s = {.is_fault = false};
    memcpy(&s.info, v->info, sizeof s.info);
    uint8_t flags = e->flags;
    if (unlikely(debug_is_on)) {
        bool behind = flags & EVF_AFTER; /* who stops in front of it is still behind the operation before */
        if (flags & EVF_AT_GATE)
            debug_call_undone(t);
        else if (!behind)
            debug_op(t, false);
        if (!debug_signal(t, &s.info, behind ? SIGNAL_BEHIND : SIGNAL_ALONE)) return;
        if (behind) debug_op(t, false);
    }
    stream_take();
    if (s.info.signo < 1 || s.info.signo > NSIG_MAX)
        replay_diverged(t, NULL, "signal number", 0, (uint64_t)s.info.signo);
    signals_deliver(t, &s, flags);
}

void replay_poke(struct thread *t, const struct event *e) {
    replay_verify(t, e, EV_POKE, "memory written by another process");
    if (e->code == POKE_BORROWS) {
        borrowed_show(((const struct ev_memory *)(e + 1))->addr);
        file_changes_shown();
    } else {
        replay_put(t, e);
    }
    stream_take();
}

static void set_regs(struct thread *t, const struct event *e) {
    const struct ev_regs *v = (const struct ev_regs *)(e + 1);
    if (v->extended && v->extended != sigframe_extended_size())
        replay_diverged(t, e, "size of vector registers", v->extended, sigframe_extended_size());
    trace_regs_from_event(t, v);
    if (v->extended) sigframe_set_extended((const uint8_t *)(v + 1));
    replay_verify(t, e, EV_REGS, "registers set by a tracer");
    stream_take();
}

/* A stop in a call or right behind it belongs to the call: there is no place between them that could be gone back to. */
static void op_of_stop(struct thread *t, uint8_t flags) {
    if (flags & EVF_RETRY)
        debug_call_undone(t);
    else if (!(flags & (EVF_AFTER | EVF_AT_GATE)))
        debug_op(t, false);
}

struct resumed replay_rest_of_stop(struct thread *t) {
    const struct event *e;
    t->awaits = AWAITS_TRACER;
    for (;;) {
        e = replay_next(t);
        if (e->kind == EV_POKE)
            replay_poke(t, e);
        else if (e->kind == EV_REGS)
            set_regs(t, e);
        else
            break;
    }
    replay_verify(t, e, EV_TURN, "end of a stop");
    if (e->flags & EVF_STEP) traced_step(t);
    struct resumed r = {e->flags & EVF_AT_GATE, e->code};
    stream_take();
    t->awaits = AWAITS_CALL;
    return r;
}

struct resumed replay_stop(struct thread *t, const struct event *e) {
    traced_step_over(t);
    replay_verify(t, e, EV_STOP, "stop for a tracer");
    if (unlikely(debug_is_on)) op_of_stop(t, e->flags);
    stream_take();
    return replay_rest_of_stop(t);
}

static bool was_shown; /* the fault that is about to be delivered, to a tracer: that is where its events begin */

/* mode.before_signal: a fault may have been a tracer's business. */
bool replay_before_signal(struct thread *t, struct pending_signal *s, uint8_t *flags) {
    if (!s->is_fault || debug_is_diverted) return true;
    const struct event *e = replay_next(t);
    if (e->kind != EV_STOP || !(e->flags & EVF_FAULT)) return true;
    was_shown = replay_stop(t, e).signal == s->info.signo;
    if (was_shown) return true;
    replay_arm(t);
    return false;
}

static void check_hash(struct thread *t, const struct event *e) {
    if (the_runtime.verify) {
        replay_verify(t, e, EV_HASH, "memory");
        const struct ev_hash *then = (const struct ev_hash *)(e + 1);
        struct ev_hash now;
        if (!memory_hash(&now)) die("what is in memory cannot be told here: /proc/self/pagemap cannot be read");
        if (then->bytes != now.bytes) replay_diverged(t, e, "bytes in memory", then->bytes, now.bytes);
        if (then->hash != now.hash) replay_diverged(t, e, "contents of memory (hash)", then->hash, now.hash);
    }
    stream_take();
}

void replay_pass_checkpoint(struct thread *t, const struct event *e) {
    if (!e->flags) snapshot_clear_host_words(t);
    replay_verify(t, e, EV_CHECKPOINT, "checkpoint");
    const struct ev_checkpoint *v = (const struct ev_checkpoint *)(e + 1);
    uint32_t n;
    uint64_t threads = snapshot_threads(t, &n);
    if (n != v->n_threads) replay_diverged(t, e, "number of R-threads", v->n_threads, n);
    if (threads != v->threads) replay_diverged(t, e, "registers of all R-threads (hash)", v->threads, threads);
    stream_take();
}

/* mode.fault: a checkpoint in front of the fault. */
bool replay_fault(struct thread *t, const struct pending_signal *s, bool kills) {
    if (debug_is_diverted) return false;
    const struct event *e = replay_next(t);
    if (e->kind != EV_CHECKPOINT || !(e->flags & EVF_AT_GATE)) return false;
    if (unlikely(debug_is_on)) debug_op(t, false);
    replay_pass_checkpoint(t, e);
    replay_arm(t);
    return true;
}

void replay_arm(struct thread *t) {
    for (;;) {
        const struct event *e = stream_peek();
        if (!e) replay_cut_off();
        if (unlikely(replay_is_killed(e)) && e->thread != t->number) {
            replay_bury(e);
            continue;
        }
        if (e->thread != t->number) break;
        if (e->kind == EV_HASH)
            check_hash(t, e);
        else if (e->kind == EV_CHECKPOINT && (e->flags & EVF_AFTER))
            replay_pass_checkpoint(t, e);
        else if (e->kind == EV_CHANGE) {
            file_changes_apply((const struct ev_change *)(e + 1));
            stream_take();
        } else if (e->kind == EV_SIGNAL && (e->flags & EVF_AFTER))
            replay_deliver(t, e);
        else if (e->kind == EV_STOP && (e->flags & EVF_AFTER))
            replay_stop(t, e);
        else if (e->kind == EV_POKE && (e->flags & EVF_AFTER))
            replay_poke(t, e);
        else
            break;
    }
    if (t->restore_mask) signals_end_wait(t);
    replay_set_budget(t);
}

/* mode.signal: a fault has recurred; what the processor said of it then is what counts. */
bool replay_signal(struct thread *t, struct pending_signal *s, uint8_t flags) {
    if (!s->is_fault) return true;
    if (unlikely(debug_is_on) && !was_shown) debug_op(t, false);
    was_shown = false;
    if (debug_is_diverted) {
        bool is_delivered = debug_signal(t, &s->info, SIGNAL_OF_FAULT);
        replay_set_budget(t);
        return is_delivered;
    }
    const struct event *e = replay_next(t);
    replay_verify(t, e, EV_FAULT, "fault");
    if (e->code != s->info.signo) replay_diverged(t, e, "signal", e->code, (uint64_t)s->info.signo);
    const struct ev_signal *v = (const struct ev_signal *)(e + 1);
    memcpy(&s->info, v->info, sizeof s->info);
    t->fault_err = v->err;
    t->fault_trapno = v->trapno;
    t->fault_cr2 = v->cr2;
    if (unlikely(debug_is_on) && !debug_signal(t, &s->info, SIGNAL_OF_FAULT)) {
        replay_set_budget(t);
        return false;
    }
    stream_take();
    shared_had_bus();
    if (unlikely(borrowed_any) && s->info.signo == SIGBUS_) borrowed_bus(t->fault_cr2);
    const struct event *next = stream_peek();
    if (next) replay_set_budget(t);
    return true;
}

/* The debugger lets programs run for shorter stretches than the log does. */
static bool is_due(struct thread *t) {
    const struct event *e = debug_is_diverted ? NULL : stream_peek(); /* pages that go while all wait are for later */
    return e && e->thread == t->number && is_at_tick(e) && e->ticks == ticks_total(t->tb);
}

/* What happened at the same tick point happens before its instruction is begun again: one that jumps to where memory says would
 * touch a page that has just been released, and that came later. */
void replay_stay_at_tick(struct thread *t) { t->tb->is_due = is_due(t) && stream_peek()->regs == event_regs(t->tb); }

static void end_turn(struct thread *t, const struct event *e) {
    snapshot_clear_host_words(t);
    t->awaits = AWAITS_TURN;
    replay_verify(t, e, EV_PREEMPT, "end of a turn");
    stream_take();
    e = replay_next(t);
    replay_verify(t, e, EV_TURN, "begin of a turn");
    stream_take();
}

static void take_at_tick(struct thread *t, const struct event *e) {
    switch (e->kind) {
    case EV_SIGNAL: replay_deliver(t, e); break;
    case EV_STOP: replay_stop(t, e); break;
    case EV_POKE: replay_poke(t, e); break;
    case EV_RELEASE:
        replay_verify(t, e, EV_RELEASE, "end of a page's stay");
        replay_release(e);
        stream_take();
        break;
    case EV_CHECKPOINT: replay_pass_checkpoint(t, e); break;
    default: end_turn(t, e);
    }
}

void replay_tick_budget(struct tblock *tb) {
    struct thread *t = tb->thread;
    if (unlikely(replay_tick_of_killed(t))) return;
    if (unlikely(debug_is_on)) {
        if (!is_due(t)) {
            debug_tick(t);
            replay_set_budget(t);
            return;
        }
        debug_op(t, false);
    }
    take_at_tick(t, replay_next(t));
    replay_arm(t);
    replay_stay_at_tick(t);
}

void replay_insn(struct tblock *tb) {
    struct thread *t = tb->thread;
    struct recorded_insn in;
    if (!recorded_insn_decode(tb, &in)) return;
    if (!debug_is_diverted && recorded_insn_is_tsc(&in) && replay_next(t)->kind != EV_INSN) {
        recorded_insn_forbid(tb); /* PR_SET_TSC */
        return;
    }
    if (unlikely(debug_is_on)) debug_op(t, false);
    if (debug_is_diverted) {
        struct ev_insn now;
        recorded_insn_execute(&in, tb, &now);
        recorded_insn_apply(&in, tb, &now);
        return;
    }
    const struct event *e = replay_next(t);
    replay_verify(t, e, EV_INSN, "instruction");
    if (e->code != in.which) replay_diverged(t, e, "instruction", e->code, in.which);
    struct ev_insn result;
    memcpy(&result, e + 1, sizeof result);
    stream_take();
    recorded_insn_apply(&in, tb, &result);
    replay_arm(t);
}

/* Without an event they had been forgotten. */
void replay_x87_pointers(struct tblock *tb, uint64_t pointers[2]) {
    struct thread *t = tb->thread;
    pointers[0] = pointers[1] = 0;
    const struct event *e = debug_is_diverted ? NULL : stream_peek();
    if (!e || e->thread != t->number || e->kind != EV_INSN || e->code != RECORDED_X87 || e->ticks != ticks_total(tb) ||
        e->regs != event_regs(tb))
        return;
    if (unlikely(debug_is_on)) debug_op(t, false);
    const struct ev_insn *then = (const struct ev_insn *)(e + 1);
    pointers[0] = then->rax;
    pointers[1] = then->rbx;
    stream_take();
    replay_set_budget(t);
}

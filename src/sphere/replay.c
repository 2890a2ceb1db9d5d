#include "sphere/replay.h"

#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "engine/kept.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/channel.h"
#include "sphere/code_watch.h"
#include "sphere/debug.h"
#include "sphere/event_log.h"
#include "sphere/file_changes.h"
#include "sphere/forced_write.h"
#include "sphere/legacy.h"
#include "sphere/memory_hash.h"
#include "sphere/mode.h"
#include "sphere/objects.h"
#include "sphere/outputs.h"
#include "sphere/recorded_insn.h"
#include "sphere/runtime.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/sigframe.h"
#include "sphere/shared_values.h"
#include "sphere/signals.h"
#include "sphere/snapshot.h"
#include "sphere/sys/model.h"
#include "sphere/sys/special.h"
#include "sphere/thread_end.h"
#include "sphere/trace_regs.h"
#include "sphere/traced.h"

#define SIGKILL_ 9
#define FOREVER (1ull << 62)
#define SIGBUS_ 7

static void arm(struct thread *t);
static void set_budget(struct thread *t);

/* ---- counting: replay --count ---- */

static uint64_t counted; /* instructions of R-threads that have ended */

static uint64_t count_all(void) {
    uint64_t n = counted;
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use) n += t->tb->count_insns;
    return n;
}

/* ---- the end ---- */

static void note_end(void);

static void leave(enum ring_ended how, int status, int exit_status) {
    note_end();
    stream_done(how, status, count_all());
    for (;;) SYS(exit_group, exit_status);
}

/* The log has no more events, though the process had not ended: it was killed, or the recording was. */
static void cut_off(void) {
    if (debug_is_on) debug_end(thread_self(), WORKER_ENDED, 0, "");
    kept_save();
    leave(RING_ENDED_CUT, 0, 0);
}

static const char *kind_name(uint8_t kind) {
    static const char *const names[] = {
#define EVENT_NAME(name, number) [number] = #name,
        EVENT_KINDS(EVENT_NAME)
#undef EVENT_NAME
    };
    return kind < ARRAY_LEN(names) && names[kind] ? names[kind] : "unknown";
}

static const char *call_name(uint64_t nr) {
    return nr < MODEL_CALLS && model_rows[nr].name[0] ? model_rows[nr].name : "unknown call";
}

/* The worst that can happen. Says where, what was expected and what was seen. */
static void diverged(struct thread *t, const struct event *e, const char *what, uint64_t expected, uint64_t seen)
    __attribute__((noreturn));
static void diverged(struct thread *t, const struct event *e, const char *what, uint64_t expected, uint64_t seen) {
    char text[256];
    fmt_into(text, sizeof text,
             "replay diverged: stream %lu, thread %u, event %lu (%s%s%s), tick %lu, pc %lx: %s: recorded %lx, now %lx",
             the_stream.number, t->number, stream_taken(), e ? kind_name(e->kind) : "none",
             e && e->kind == EV_SYSCALL ? " " : "", e && e->kind == EV_SYSCALL ? call_name(e->code) : "",
             ticks_total(t->tb), t->tb->pc, what, expected, seen);
    if (debug_is_on) debug_end(t, WORKER_FAILED, 0, text);
    say("%s", text);
    leave(RING_ENDED_DIVERGED, 0, 125);
    __builtin_unreachable();
}

/* ---- whose turn it is ---- */

static struct thread *find_thread(uint32_t number) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use && t->scheduled && t->number == number) return t;
    return NULL;
}

static struct thread *whose_turn(struct thread *t, const struct event *e) {
    struct thread *other = find_thread(e->thread);
    if (!other) diverged(t, e, "an R-thread that does not exist", e->thread, t->number);
    return other;
}

static void release(const struct event *e);
static void acquire_next(struct thread *t, const struct event *e);
static void poke(struct thread *t, const struct event *e);

/* The next event, but for pages that others took while all R-threads waited. */
static const struct event *next_of_all(void) {
    for (;;) {
        const struct event *e = stream_peek();
        if (!e) cut_off();
        if (e->kind != EV_RELEASE || !(e->flags & EVF_AFTER)) return e;
        release(e);
        stream_take();
    }
}

/* The next event, once it is one of t's: until then others run. */
static const struct event *next_of(struct thread *t) {
    for (;;) {
        const struct event *e = next_of_all();
        if (e->thread == t->number) return e;
        t->tb->epoch = EPOCH_IDLE;
        schedule_switch(whose_turn(t, e));
    }
}

/* Vector and x87 registers that a checkpoint did not have, though this process may have begun with it. */
static void take_extended(struct thread *t, const struct event *e) {
    static uint8_t extended[SNAPSHOT_EXTENDED_MAX] __attribute__((aligned(64)));
    const struct ev_extended *v = (const struct ev_extended *)(e + 1);
    size_t size = sigframe_extended_size();
    if (t->owes) {
        if (v->xcr0 != sigframe_extended_mask() || v->len != size || size > sizeof extended)
            diverged(t, e, "size of the vector registers", v->len, size);
        memcpy(extended, v + 1, size);
        sigframe_load_extended(extended);
        t->owes = false;
    }
    stream_take();
}

/* The same, but for pages that t acquires or hands over on its way there. */
static const struct event *next_mine(struct thread *t) {
    for (;;) {
        const struct event *e = next_of(t);
        if (e->kind == EV_ACQUIRE) {
            acquire_next(t, e);
        } else if (e->kind == EV_EXTENDED) {
            take_extended(t, e);
        } else if (e->kind == EV_RELEASE && (e->flags & EVF_AT_GATE)) {
            release(e);
            stream_take();
        } else if (e->kind == EV_POKE && (e->flags & EVF_AT_GATE)) {
            poke(t, e);
        } else {
            return e;
        }
    }
}

/* t has ended. */
static void leave_to_others(struct thread *t) __attribute__((noreturn));
static void leave_to_others(struct thread *t) {
    if (unlikely(debug_is_on)) debug_thread_ended(t);
    const struct event *e = next_of_all();
    t->awaits = AWAITS_NOTHING; /* its slot is in use until another one has begun */
    t->tb->epoch = EPOCH_IDLE;
    counted += t->tb->count_insns;
    t->tb->count_insns = 0;
    schedule_leave(whose_turn(t, e));
}

/* ---- comparing ---- */

static void verify(struct thread *t, const struct event *e, enum event_kind kind, const char *seen) {
    if (e->kind != kind) diverged(t, e, seen, e->kind, kind);
    if (e->ticks != ticks_total(t->tb)) diverged(t, e, "ticks", e->ticks, ticks_total(t->tb));
    uint32_t regs = event_regs(t->tb);
    if (e->regs != regs) diverged(t, e, "registers (hash)", e->regs, regs);
}

static void verify_call(struct thread *t, const struct event *e, uint64_t nr, const uint64_t a[6]) {
    if (e->kind != EV_SYSCALL) diverged(t, e, call_name(nr), e->kind, EV_SYSCALL);
    if (e->code != (uint16_t)nr) diverged(t, e, call_name(nr), e->code, nr);
    const struct ev_syscall *s = (const struct ev_syscall *)(e + 1);
    static const char *const names[6] = {"argument 1", "argument 2", "argument 3",
                                         "argument 4", "argument 5", "argument 6"};
    for (int i = 0; i < 6; i++)
        if (s->args[i] != a[i]) diverged(t, e, names[i], s->args[i], a[i]);
    verify(t, e, EV_SYSCALL, "system call");
}

/* ---- shared memory ---- */

#define STUCK_AFTER 1200 /* tenths of a second without any progress */

static void await_version(struct thread *t, const struct event *e, struct shared_page *p, uint32_t version) {
    uint64_t progress = 0;
    uint32_t now;
    for (int quiet = 0; (now = __atomic_load_n(&p->version, __ATOMIC_ACQUIRE)) != version; quiet++) {
        struct __kernel_timespec timeout = {0, 100000000};
        SYS(futex, &p->version, FUTEX_WAIT, now, &timeout, 0, 0);
        uint64_t seen = __atomic_load_n(&shared_tables()->progress, __ATOMIC_RELAXED);
        if (seen != progress) quiet = 0;
        progress = seen;
        if (quiet == STUCK_AFTER) diverged(t, e, "a shared page does not come", version, now);
    }
}

static bool has_ended(uint64_t stream) {
    if (stream >= SHARED_STREAMS) return true;
    return __atomic_load_n(&shared_tables()->ended[stream / 64], __ATOMIC_ACQUIRE) >> (stream % 64) & 1;
}

static void await_end(struct thread *t, const struct event *e, uint64_t stream) {
    for (int i = 0; !has_ended(stream); i++) {
        struct __kernel_timespec ms = {0, 1000000};
        SYS(nanosleep, &ms, 0);
        if (i == STUCK_AFTER * 100) diverged(t, e, "the owner of a shared page does not end", stream, 0);
    }
}

static void note_end(void) {
    struct shared_tables *s = the_channel->shares ? shared_tables() : NULL;
    uint64_t stream = the_stream.number;
    if (!s || stream >= SHARED_STREAMS) return;
    __atomic_fetch_or(&s->ended[stream / 64], 1ull << (stream % 64), __ATOMIC_RELEASE);
    __atomic_add_fetch(&s->progress, 1, __ATOMIC_RELAXED);
}

static struct shared_page *page_of(const struct ev_page *v) {
    struct shared_at at = {v->object, v->page};
    if (!shared_tables()) die("stream %lu shares memory that is not there", the_stream.number);
    return &shared_tables()->pages[shared_index(at, 0)];
}

static void set_version(struct shared_page *p, uint32_t version) {
    __atomic_store_n(&p->version, version, __ATOMIC_RELEASE);
    __atomic_add_fetch(&shared_tables()->progress, 1, __ATOMIC_RELAXED);
    SYS(futex, &p->version, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

static void release(const struct event *e) {
    const struct ev_page *v = (const struct ev_page *)(e + 1);
    struct shared_page *p = page_of(v);
    shared_give((struct shared_at){v->object, v->page});
    set_version(p, (uint32_t)v->version + 1);
}

static void put(struct thread *t, const struct event *e);
static void take_memory(struct thread *t);

/* The page comes when its owner has released it, or has ended. */
static void acquire_next(struct thread *t, const struct event *e) {
    if (debug_is_on) debug_end(t, WORKER_FAILED, 0, "memory shared with other processes: not yet for the debugger");
    verify(t, e, EV_ACQUIRE, "shared page");
    struct ev_page v = *(const struct ev_page *)(e + 1);
    struct shared_page *p = page_of(&v);
    if (v.from) {
        await_end(t, e, v.from - 1);
        await_version(t, e, p, (uint32_t)v.version - 1);
        set_version(p, (uint32_t)v.version);
    } else if (v.writable == 2) { /* it was nobody's */
        await_version(t, e, p, (uint32_t)v.version - 1);
        set_version(p, (uint32_t)v.version);
    } else {
        await_version(t, e, p, (uint32_t)v.version);
    }
    shared_active = true;
    shared_take((struct shared_at){v.object, v.page});
    stream_take();
    if (v.from || v.writable == 2) take_memory(t);
}

/* mode.access: the log has the value. One who faulted is there for certain; others have pages yet that go on the way to it. */
static bool access(struct thread *t, struct shared_at at, const struct value_access *a, bool faulted) {
    const struct event *e = faulted ? next_of(t) : stream_peek();
    if (!e || e->thread != t->number || e->kind != EV_INSN || e->code != RECORDED_SHARED) return false;
    if (!faulted && (e->ticks != ticks_total(t->tb) || e->regs != event_regs(t->tb))) return false;
    verify(t, e, EV_INSN, "a shared value");
    uint64_t value = ((const struct ev_insn *)(e + 1))->rax;
    stream_take();
    values_run(t, a, &value);
    set_budget(t);
    return true;
}

/* mode.acquire: the log has the page that is needed, as the next thing that t does. What comes behind it is for later. */
static void acquire(struct thread *t, struct shared_at at, gaddr addr) {
    do { /* also if another R-thread has got it meanwhile */
        const struct event *e = next_of(t);
        if (e->kind != EV_ACQUIRE) diverged(t, e, "access to a shared page of others", e->kind, EV_ACQUIRE);
        acquire_next(t, e);
    } while (!shared_owns(at));
    set_budget(t);
}

/* ---- signals ---- */

static bool is_at_tick(const struct event *e) {
    if (e->kind == EV_PREEMPT) return true;
    bool moves = e->kind == EV_SIGNAL || e->kind == EV_RELEASE || e->kind == EV_CHECKPOINT || e->kind == EV_STOP ||
                 e->kind == EV_POKE;
    return moves && !(e->flags & (EVF_AFTER | EVF_AT_GATE | EVF_FAULT));
}

static void set_budget(struct thread *t) {
    uint64_t budget = FOREVER;
    if (debug_is_diverted) {
        ticks_set_budget(t->tb, debug_budget(t, budget));
        return;
    }
    const struct event *e = stream_peek();
    if (!e) cut_off();
    if (e->thread == t->number && is_at_tick(e)) {
        if (e->ticks < ticks_total(t->tb)) diverged(t, e, "tick has passed", e->ticks, ticks_total(t->tb));
        budget = e->ticks - ticks_total(t->tb);
    }
    if (e->thread == t->number && e->kind == EV_FAULT && e->code == SIGBUS_)
        shared_expect_bus(((const struct ev_signal *)(e + 1))->cr2);
    if (unlikely(debug_is_on)) budget = debug_budget(t, budget);
    ticks_set_budget(t->tb, budget);
}

void replay_set_budget(struct thread *t) { set_budget(t); }

static void deliver(struct thread *t, const struct event *e) {
    verify(t, e, EV_SIGNAL, "signal");
    const struct ev_signal *v = (const struct ev_signal *)(e + 1);
    struct pending_signal s = {.is_fault = false};
    memcpy(&s.info, v->info, sizeof s.info);
    uint8_t flags = e->flags;
    if (unlikely(debug_is_on)) {
        bool behind = flags & EVF_AFTER; /* who stops in front of it is still behind the operation before */
        if (!behind) debug_op(t, false);
        debug_signal(t, &s.info, behind ? SIGNAL_BEHIND : SIGNAL_ALONE);
        if (behind) debug_op(t, false);
    }
    stream_take();
    if (s.info.signo < 1 || s.info.signo > NSIG_MAX) diverged(t, NULL, "signal number", 0, (uint64_t)s.info.signo);
    signals_deliver(t, &s, flags);
}

/* ---- tracing: what a tracer of the sphere did to t ---- */

static void poke(struct thread *t, const struct event *e) {
    verify(t, e, EV_POKE, "memory written by another process");
    put(t, e);
    stream_take();
}

static void set_regs(struct thread *t, const struct event *e) {
    const struct ev_regs *v = (const struct ev_regs *)(e + 1);
    if (v->extended && v->extended != sigframe_extended_size())
        diverged(t, e, "size of vector registers", v->extended, sigframe_extended_size());
    trace_regs_from_event(t, v);
    if (v->extended) sigframe_set_extended((const uint8_t *)(v + 1));
    verify(t, e, EV_REGS, "registers set by a tracer");
    stream_take();
}

struct resumed {
    bool calls; /* goes on with the call that it stopped at */
    int signal; /* is delivered next; 0: none */
};

/* t stops here, and goes on as its tracer wanted. */
static struct resumed stop_again(struct thread *t, const struct event *e) {
    traced_step_over(t);
    verify(t, e, EV_STOP, "stop for a tracer");
    if (unlikely(debug_is_on)) debug_op(t, false);
    stream_take();
    for (;;) {
        e = next_mine(t);
        if (e->kind == EV_POKE)
            poke(t, e);
        else if (e->kind == EV_REGS)
            set_regs(t, e);
        else
            break;
    }
    verify(t, e, EV_TURN, "end of a stop");
    if (e->flags & EVF_STEP) traced_step(t);
    struct resumed r = {e->flags & EVF_AT_GATE, e->code};
    stream_take();
    return r;
}

/* mode.before_signal: a fault may have been a tracer's business. */
static bool before_signal(struct thread *t, struct pending_signal *s, uint8_t *flags) {
    if (!s->is_fault || debug_is_diverted) return true;
    const struct event *e = next_mine(t);
    if (e->kind != EV_STOP || !(e->flags & EVF_FAULT)) return true;
    if (stop_again(t, e).signal == s->info.signo) return true;
    arm(t);
    return false;
}

static void check_hash(struct thread *t, const struct event *e) {
    if (the_runtime.verify) {
        verify(t, e, EV_HASH, "memory");
        const struct ev_hash *then = (const struct ev_hash *)(e + 1);
        struct ev_hash now = memory_hash();
        if (then->bytes != now.bytes) diverged(t, e, "bytes in memory", then->bytes, now.bytes);
        if (then->hash != now.hash) diverged(t, e, "contents of memory (hash)", then->hash, now.hash);
    }
    stream_take();
}

/* The recording has a checkpoint here: the R-threads must be as they were. */
static void pass_checkpoint(struct thread *t, const struct event *e) {
    if (!e->flags) snapshot_clear_host_words(t);
    verify(t, e, EV_CHECKPOINT, "checkpoint");
    const struct ev_checkpoint *v = (const struct ev_checkpoint *)(e + 1);
    uint32_t n;
    uint64_t threads = snapshot_threads(t, &n);
    if (n != v->n_threads) diverged(t, e, "number of R-threads", v->n_threads, n);
    if (threads != v->threads) diverged(t, e, "registers of all R-threads (hash)", v->threads, threads);
    stream_take();
}

/* mode.fault: a checkpoint in front of the fault. */
static bool on_fault(struct thread *t, const struct pending_signal *s, bool kills) {
    if (debug_is_diverted) return false;
    const struct event *e = next_mine(t);
    if (e->kind != EV_CHECKPOINT || !(e->flags & EVF_AT_GATE)) return false;
    if (unlikely(debug_is_on)) debug_op(t, false);
    pass_checkpoint(t, e);
    arm(t);
    return true;
}

/* Before t goes on: signals right behind the last event, and how far it may go. */
static void arm(struct thread *t) {
    for (;;) {
        const struct event *e = stream_peek();
        if (!e) cut_off();
        if (e->thread != t->number) break;
        if (e->kind == EV_HASH)
            check_hash(t, e);
        else if (e->kind == EV_CHECKPOINT && (e->flags & EVF_AFTER))
            pass_checkpoint(t, e);
        else if (e->kind == EV_CHANGE) {
            file_changes_apply((const struct ev_change *)(e + 1));
            stream_take();
        } else if (e->kind == EV_SIGNAL && (e->flags & EVF_AFTER))
            deliver(t, e);
        else if (e->kind == EV_STOP && (e->flags & EVF_AFTER))
            stop_again(t, e);
        else if (e->kind == EV_POKE && (e->flags & EVF_AFTER))
            poke(t, e);
        else
            break;
    }
    if (t->restore_mask) signals_end_wait(t);
    set_budget(t);
}

/* mode.signal: a fault has recurred; what the processor said of it then is what counts. */
static void on_signal(struct thread *t, struct pending_signal *s, uint8_t flags) {
    if (!s->is_fault) return;
    if (unlikely(debug_is_on)) debug_op(t, false);
    if (debug_is_diverted) {
        debug_signal(t, &s->info, SIGNAL_OF_FAULT);
        return;
    }
    const struct event *e = next_mine(t);
    verify(t, e, EV_FAULT, "fault");
    if (e->code != s->info.signo) diverged(t, e, "signal", e->code, (uint64_t)s->info.signo);
    const struct ev_signal *v = (const struct ev_signal *)(e + 1);
    memcpy(&s->info, v->info, sizeof s->info);
    t->fault_err = v->err;
    t->fault_trapno = v->trapno;
    t->fault_cr2 = v->cr2;
    if (unlikely(debug_is_on)) debug_signal(t, &s->info, SIGNAL_OF_FAULT);
    stream_take();
    shared_had_bus();
    const struct event *next = stream_peek();
    if (next && next->kind != EV_END) set_budget(t);
}

/* The process has ended, as the next event says: a debugger may still look at it. */
static void ended(struct thread *t, int status) {
    if (!debug_is_on) return;
    stream_take();
    debug_end(t, WORKER_EXITED, status, "");
}

static void on_death(struct thread *t, int signo) {
    if (debug_is_diverted) debug_end(t, WORKER_EXITED, signo, "");
    if (!t->process->shares_memory) process_clear_words(t->process);
    const struct event *e = next_mine(t);
    if (e->kind == EV_EXIT) { /* a process that shares our memory */
        stream_take();
        thread_clear_words(t);
        leave_to_others(t);
    }
    verify(t, e, EV_END, "death by a signal");
    thread_leave_mutexes(t);
    int status = ((const struct ev_exit *)(e + 1))->status;
    if (status != signo) diverged(t, e, "signal", (uint64_t)status, (uint64_t)signo);
    ended(t, status);
    leave(RING_ENDED_PROCESS, status, 0);
}

/* The debugger lets programs run for shorter stretches than the log does. */
static bool is_due(struct thread *t) {
    const struct event *e = debug_is_diverted ? NULL : next_of_all();
    return e && e->thread == t->number && is_at_tick(e) && e->ticks == ticks_total(t->tb);
}

static void on_tick_budget(struct tblock *tb) {
    struct thread *t = tb->thread;
    if (unlikely(debug_is_on)) {
        if (!is_due(t)) {
            debug_tick(t);
            set_budget(t);
            return;
        }
        debug_op(t, false);
    }
    const struct event *e = next_mine(t);
    if (e->kind == EV_SIGNAL) {
        deliver(t, e);
        arm(t);
        return;
    }
    if (e->kind == EV_STOP || e->kind == EV_POKE) {
        if (e->kind == EV_STOP)
            stop_again(t, e);
        else
            poke(t, e);
        arm(t);
        return;
    }
    if (e->kind == EV_RELEASE) {
        verify(t, e, EV_RELEASE, "end of a page's stay");
        release(e);
        stream_take();
        arm(t);
        return;
    }
    if (e->kind == EV_CHECKPOINT) {
        pass_checkpoint(t, e);
        arm(t);
        return;
    }
    snapshot_clear_host_words(t);
    t->awaits = AWAITS_TURN;
    verify(t, e, EV_PREEMPT, "end of a turn");
    stream_take();
    e = next_mine(t);
    verify(t, e, EV_TURN, "begin of a turn");
    stream_take();
    arm(t);
}

/* ---- instructions ---- */

static void on_insn(struct tblock *tb) {
    struct thread *t = tb->thread;
    struct recorded_insn in;
    if (!recorded_insn_decode(tb, &in)) return;
    if (unlikely(debug_is_on)) debug_op(t, false);
    if (debug_is_diverted) {
        struct ev_insn now;
        recorded_insn_execute(&in, tb, &now);
        recorded_insn_apply(&in, tb, &now);
        return;
    }
    const struct event *e = next_mine(t);
    verify(t, e, EV_INSN, "instruction");
    if (e->code != in.which) diverged(t, e, "instruction", e->code, in.which);
    struct ev_insn result;
    memcpy(&result, e + 1, sizeof result);
    stream_take();
    recorded_insn_apply(&in, tb, &result);
    arm(t);
}

/* ---- what a call wrote ---- */

static void put(struct thread *t, const struct event *e) {
    const struct ev_memory *m = (const struct ev_memory *)(e + 1);
    if (!m->len) return;
    if (m->addr + m->len < m->addr || aspace_is_runtime(m->addr, m->len))
        diverged(t, e, "output outside of the program", m->addr, m->len);
    if (!forced_fill(m->addr, m + 1, m->len)) diverged(t, e, "output to memory that is not there", m->addr, m->len);
}

static void take_outs(struct thread *t, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const struct event *e = stream_peek();
        if (!e) cut_off();
        if (e->kind != EV_OUT) diverged(t, e, "output", EV_OUT, e->kind);
        put(t, e);
        stream_take();
    }
}

/* ---- calls that are done again ---- */

static void check_result(struct thread *t, uint64_t nr, long recorded, long now) {
    if (recorded != now) diverged(t, NULL, call_name(nr), (uint64_t)recorded, (uint64_t)now);
}

static struct file_id file_of(const struct ev_mapped *m) {
    return (struct file_id){m->dev, m->ino, m->size, m->mtime_ns, m->ctime_ns, MAPPED_BIRTH(m->flags)};
}

static bool is_unnamed(const struct object_name *n) { return !n->lo && !n->hi; }

/* What a System V segment held before. */
static void take_memory(struct thread *t) {
    for (const struct event *e; (e = stream_peek()) && e->kind == EV_MEMORY; stream_take()) put(t, e);
}

/* What was mapped comes from the log; where it was mapped, too. */
static void map_again(struct thread *t, struct mapping *m, bool is_file) {
    struct file_source from = {.fd = -1};
    bool shared = (m->flags & MAP_TYPE) != MAP_PRIVATE;
    uint64_t owned = 0; /* pages */
    if (is_file) {
        const struct event *e = stream_peek();
        if (!e) cut_off();
        if (e->kind != EV_MAPPED) diverged(t, e, "mapped file", EV_MAPPED, e->kind);
        struct ev_mapped v = *(const struct ev_mapped *)(e + 1);
        stream_take();
        if (v.flags & MAPPED_UNSURE) m->was_writable = true;
        if (!m->end) m->end = m->start + PAGE_UP(v.size); /* shmat */
        if (v.flags & MAPPED_ANONYMOUS) {
            m->flags |= MAP_ANONYMOUS;
        } else {
            m->file = file_of(&v);
            m->tracked = v.flags & MAPPED_TRACKED;
            if (m->tracked) m->object = shared_file(&m->file);
            from = file_changes_source(&v);
        }
        owned = v.flags & MAPPED_OWNED ? PAGE_UP(v.size) / PAGE_SIZE : 0;
    }
    /* copies of this process are not to share it with each other */
    if (debug_is_on && shared) m->flags = (m->flags & ~(uint32_t)MAP_TYPE) | MAP_PRIVATE;
    long ret = aspace_restore(m, from.fd, from.base);
    if (ret) diverged(t, NULL, "mapping fails", 0, (uint64_t)-ret);
    if (!owned) return;
    shared_own(shared_file(&m->file), owned);
    take_memory(t);
}

static void mmap_again(struct thread *t, const uint64_t a[6], long ret) {
    struct mapping m = {.start = (gaddr)ret,
                        .end = (gaddr)ret + PAGE_UP(a[1]),
                        .prot = (uint32_t)a[2],
                        .flags = (uint32_t)a[3] & ~(uint32_t)MAP_FIXED_NOREPLACE,
                        .offset = a[3] & MAP_ANONYMOUS ? 0 : a[5],
                        .was_writable = a[2] & PROT_WRITE};
    map_again(t, &m, !(a[3] & MAP_ANONYMOUS));
}

static void shmat_again(struct thread *t, const uint64_t a[6], long ret) {
    struct mapping m = {.start = (gaddr)ret, .flags = MAP_SHARED};
    m.prot = PROT_READ | (a[2] & 010000 ? 0 : PROT_WRITE) | (a[2] & 0100000 ? PROT_EXEC : 0);
    fmt_into(m.name, sizeof m.name, "/SYSV");
    map_again(t, &m, true);
}

static long mremap_again(const uint64_t a[6], long ret) {
    if ((gaddr)ret == a[0]) return aspace_mremap(a[0], a[1], a[2], (int)a[3] & ~(MREMAP_MAYMOVE | MREMAP_FIXED), 0);
    return aspace_mremap(a[0], a[1], a[2], (int)a[3] | MREMAP_MAYMOVE | MREMAP_FIXED, (gaddr)ret);
}

/* Ranges with holes: what comes before is changed all the same. */
static bool has_partial_effect(uint64_t nr, long ret) {
    return ret == -ENOMEM && (nr == __NR_madvise || nr == __NR_mprotect || nr == __NR_pkey_mprotect);
}

/* So it is if part of the range is a file that was not open for writing; its copy is. */
static void protect_up_to_file(gaddr start, uint64_t len, int prot) {
    struct mapping m;
    gaddr end = start + PAGE_UP(len);
    for (gaddr at = start; at < end && aspace_find(at, &m); at = m.end) {
        bool is_file = (m.flags & MAP_TYPE) != MAP_PRIVATE && m.file.ino;
        if (is_file && (prot & PROT_WRITE)) return;
        aspace_mprotect(at, MIN(m.end, end) - at, prot);
    }
}

static void do_again(struct tblock *tb, uint64_t nr, uint64_t a[6], long ret) {
    struct thread *t = tb->thread;
    if (unlikely(code_watch_protected || track_closes)) model_before_kernel_write(nr, a);
    bool is_kept_by_us = nr == __NR_set_tid_address || nr == __NR_set_robust_list;
    if (nr == __NR_mprotect && ret == -EACCES) protect_up_to_file(a[0], a[1], (int)a[2]);
    if (sys_failed(ret) && !has_partial_effect(nr, ret)) return;
    if (model_does(nr, a) == DOES_EMULATE && !is_kept_by_us) return;
    switch (nr) {
    case __NR_mmap: mmap_again(t, a, ret); break;
    case __NR_shmat: shmat_again(t, a, ret); break;
    case __NR_mremap: check_result(t, nr, ret, mremap_again(a, ret)); break;
    case __NR_brk:
        if (a[0] == 0 || (gaddr)ret == a[0]) check_result(t, nr, ret, sys_brk(tb, a));
        break;
    case __NR_set_tid_address: thread_set_tid_address(t, a[0]); break;
    case __NR_set_robust_list: thread_set_robust_list(t, a[0], a[1]); break;
    case __NR_madvise:
        if (a[2] == MADV_FREE) a[2] = MADV_DONTNEED;
        check_result(t, nr, ret, sys_madvise(tb, a));
        break;
    case __NR_mprotect:
    case __NR_pkey_mprotect:
    case __NR_munmap:
    case __NR_shmdt:
    case __NR_rt_sigaction:
    case __NR_rt_sigprocmask:
    case __NR_sigaltstack:
    case __NR_prctl:
    case __NR_arch_prctl:
    case __NR_seccomp:
    case __NR_remap_file_pages: check_result(t, nr, ret, model_special[nr](tb, a)); break;
    }
}

/* ---- ordinary calls ---- */

static void finish(struct tblock *tb, gaddr next, uint64_t flags, long ret) {
    tb->gpr[RAX] = (uint64_t)ret;
    tb->gpr[RCX] = next;
    tb->gpr[R11] = flags;
    if (unlikely(tb->thread->legacy.under_way)) legacy_done(tb);
}

/* The SYSCALL event of the call, compared and taken; its outputs are still to come. */
static struct ev_syscall take_call(struct thread *t, const struct event *e, uint64_t nr, const uint64_t a[6]) {
    verify_call(t, e, nr, a);
    struct ev_syscall s = *(const struct ev_syscall *)(e + 1);
    if (e->flags & EVF_RESTORE_MASK) {
        signals_begin_wait(t, s.out_seq);
    }
    if (e->flags & EVF_OUTPUT) outputs_repeat(nr, a, s.out_fd, s.out_seq, s.ret);
    stream_take();
    return s;
}

static void ordinary(struct tblock *tb, const struct event *e, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    struct ev_syscall s = take_call(t, e, nr, a);
    /* files come behind a call's outputs, and mapping calls have none */
    do_again(tb, nr, a, s.ret);
    if (unlikely(debug_is_on) && model_does(nr, a) != DOES_EMULATE) debug_mapped();
    take_outs(t, s.outs);
    finish(tb, next, flags, s.ret);
    arm(t);
}

/* ---- threads ---- */

void replay_enter_turn(void) {
    struct thread *t = thread_self();
    const struct event *e = next_mine(t);
    verify(t, e, EV_TURN, "begin of an R-thread");
    stream_take();
    arm(t);
    engine_run(t->tb);
}

struct clone_request {
    uint64_t flags, stack, tls, child_tid;
};

static struct clone_request read_clone(uint64_t nr, const uint64_t a[6]) {
    struct clone_request r = {0};
    if (nr == __NR_vfork) r.flags = CLONE_VM | CLONE_VFORK;
    if (nr == __NR_clone) r = (struct clone_request){a[0], a[1], a[4], a[3]};
    if (nr == __NR_clone3) {
        struct clone_args ca;
        memset(&ca, 0, sizeof ca);
        if (guest_read(&ca, a[0], MIN(a[1], sizeof ca)))
            r = (struct clone_request){ca.flags, ca.stack ? ca.stack + ca.stack_size : 0, ca.tls, ca.child_tid};
    }
    return r;
}

static struct thread *make_rthread(struct tblock *tb, const struct clone_request *r, uint32_t number) {
    struct thread *child = thread_make_child(tb, r->flags, r->stack);
    if (!child) die("no memory for another R-thread");
    child->number = number;
    child->tid = 0;
    if (r->flags & CLONE_CHILD_CLEARTID) child->clear_tid = r->child_tid;
    schedule_add(child, replay_enter_turn, r->flags & CLONE_SETTLS ? r->tls : schedule_fs_base());
    return child;
}

static void clone_call(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread, *child = NULL;
    struct clone_request r = read_clone(nr, a);
    const struct event *e = next_mine(t);
    if (e->kind == EV_CLONE) {
        verify(t, e, EV_CLONE, "clone");
        uint32_t number = ((const struct ev_child *)(e + 1))->thread;
        stream_take();
        if (find_thread(number)) diverged(t, NULL, "number of a new R-thread", number, number);
        child = make_rthread(tb, &r, number);
        if (unlikely(debug_is_on)) debug_thread_made(t, child);
        e = next_mine(t);
    }
    struct ev_syscall s = take_call(t, e, nr, a);
    if (child && s.ret < 0) child->in_use = false;
    if (child && (r.flags & CLONE_VFORK)) child->awaits = AWAITS_NOTHING; /* has gone, maybe killed */
    if (child && s.ret > 0 && !(r.flags & CLONE_VFORK)) child->tid = (int)s.ret;
    take_outs(t, s.outs);
    finish(tb, next, flags, s.ret);
    arm(t);
}

static void end_process(struct thread *t, int status) __attribute__((noreturn));
static void end_process(struct thread *t, int status) {
    ended(t, status);
    kept_save();
    leave(RING_ENDED_PROCESS, status, 0);
    __builtin_unreachable();
}

static void exit_call(struct thread *t) __attribute__((noreturn));
static bool is_last(const struct thread *self) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t != self && t->in_use && t->scheduled) return false;
    return true;
}

static void exit_call(struct thread *t) {
    bool ends_all = t->tb->gpr[RAX] == __NR_exit_group && !t->process->shares_memory;
    if (ends_all || is_last(t)) process_clear_words(t->process);
    const struct event *e = next_mine(t);
    int status = ((const struct ev_exit *)(e + 1))->status;
    if (e->kind == EV_END) {
        verify(t, e, EV_END, "exit");
        thread_leave_mutexes(t);
        end_process(t, status);
    }
    verify(t, e, EV_EXIT, "exit");
    stream_take();
    thread_clear_words(t);
    leave_to_others(t);
}

static void thread_killed(struct thread *t, int signo) { exit_call(t); }

/* ---- processes ---- */

static void forked_child(struct thread *t, uint64_t stream) {
    threads_after_fork(t);
    if (!stream_attach_reader(fd_own() + 1, stream)) { /* killed before it had begun */
        note_end();
        SYS(exit_group, 0);
    }
    shared_disown_all();
    t->number = 0;
    counted = 0;
    t->tb->count_insns = 0;
    const struct event *e = stream_peek();
    if (!e) cut_off();
    if (e->kind != EV_FORKED) diverged(t, e, "begin of a process", e->kind, EV_FORKED);
    t->tid = t->tgid = t->process->pid = (int)((const struct ev_forked *)(e + 1))->pid;
    stream_take();
}

/* True: this is the child. */
static bool do_fork(struct thread *t, const struct event *e) {
    verify(t, e, EV_FORK, "fork");
    uint64_t stream = ((const struct ev_child *)(e + 1))->stream;
    const struct event *then = stream_peek_second();
    bool failed = then && then->kind == EV_SYSCALL && ((const struct ev_syscall *)(then + 1))->ret < 0;
    stream_take();
    shared_before_fork(NULL);
    if (failed || stream == UINT64_MAX) return false;
    if (debug_is_on) { /* one process is debugged: the one that the child becomes, or its parent */
        if (!debug_follows(stream)) return false;
        stream_done(RING_ENDED_EXEC, 0, 0);
        forked_child(t, stream);
        debug_begin(t);
        return true;
    }
    long pid = SYS(fork);
    if (pid < 0) die("cannot fork to replay a process (error %ld)", -pid);
    if (pid == 0) forked_child(t, stream);
    return pid == 0;
}

static void fork_call(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    struct clone_request r = read_clone(nr, a);
    const struct event *e = next_mine(t);
    if (e->kind == EV_FORK) {
        if (do_fork(t, e) && r.stack) tb->gpr[RSP] = r.stack;
        e = next_mine(t);
    }
    struct ev_syscall s = take_call(t, e, nr, a);
    take_outs(t, s.outs);
    finish(tb, next, flags, s.ret);
    arm(t);
}

/* Filters of the program live through execve. */
static void exec_runtime(struct thread *t, uint64_t stream) __attribute__((noreturn));
static void exec_runtime(struct thread *t, uint64_t stream) {
    char options[sizeof the_runtime.options + 64];
    fmt_into(options, sizeof options, "%s,rtfd=%d,stream=%lu", the_runtime.options, fd_own(), stream);
    const struct seccomp *s = &t->seccomp;
    const char **argv = arena_pages(((size_t)s->count + 8) * sizeof *argv), **v = argv;
    *v++ = "reprise-rt", *v++ = "--start", *v++ = options, *v++ = "replay";
    for (int i = 0; i < s->count; i++) {
        const struct seccomp_filter *f = seccomp_nth(s, i);
        char *text = arena_pages(seccomp_text_size(f));
        seccomp_to_text(f, text);
        *v++ = text;
    }
    *v++ = "--", *v++ = "replay";
    const char *envp[] = {NULL};
    long ret = SYS(execveat, fd_own(), "", argv, envp, AT_EMPTY_PATH);
    die("cannot start the runtime for the next program (error %ld)", -ret);
}

/* Comes back if the program that is left goes on for other R-threads: the next event of t, if there is one, says that the call
 * failed after all. */
static void exec_again(struct thread *t, uint64_t stream) {
    if (debug_is_on) {
        if (!t->process->shares_memory) debug_end(t, WORKER_EXEC, 0, "");
        leave_to_others(t);
    }
    if (!t->process->shares_memory) {
        kept_save();
        note_end();
        stream_done(stream == UINT64_MAX ? RING_ENDED_CUT : RING_ENDED_EXEC, 0, count_all());
        if (stream == UINT64_MAX) SYS(exit_group, 0);
        exec_runtime(t, stream);
    }
    if (stream != UINT64_MAX && SYS(fork) == 0) exec_runtime(t, stream);
    if (t->vforked) leave_to_others(t);
    thread_clear_words(t);
}

/* Whether the exec that is next in the log failed: then its result follows. */
static bool exec_fails(struct thread *t, uint64_t nr) {
    const struct event *then = stream_peek_second();
    return then && then->thread == t->number && then->kind == EV_SYSCALL && then->code == (uint16_t)nr;
}

/* Others may run, and make events, before it is known whether the call failed. */
static bool is_leaving_others(const struct thread *t) { return t->process->shares_memory && !t->vforked; }

static void exec_call(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    const struct event *e = next_mine(t);
    if (e->kind == EV_EXEC) {
        verify(t, e, EV_EXEC, "exec");
        uint64_t stream = ((const struct ev_child *)(e + 1))->stream;
        bool fails = exec_fails(t, nr);
        stream_take();
        if (!fails || is_leaving_others(t)) exec_again(t, stream);
        e = next_mine(t);
    }
    ordinary(tb, e, nr, a, next, flags);
}

/* ---- the gate ---- */

static uint64_t flags_at_call(const struct tblock *tb) { return tb->rflags | (tb->trap_flag ? RFLAGS_TF : 0); }

static void answer_call(struct tblock *tb) {
    struct thread *t = tb->thread;
    t->awaits = AWAITS_CALL;
    uint64_t nr = tb->gpr[RAX], a[6];
    gate_args(tb, a);
    gaddr next = tb->pc;
    uint64_t flags = flags_at_call(tb);
    const struct event *e = next_mine(t);
    if (unlikely(e->flags & EVF_AT_GATE) && (e->kind == EV_SIGNAL || e->kind == EV_CHECKPOINT)) {
        gate_retry(tb, next);
        if (e->kind == EV_SIGNAL)
            deliver(t, e);
        else
            pass_checkpoint(t, e);
        arm(t);
        return;
    }
    while (unlikely(e->kind == EV_STOP) && (e->flags & EVF_AT_GATE)) {
        if (e->flags & EVF_RETRY) gate_retry(tb, next);
        if (!stop_again(t, e).calls) {
            arm(t);
            return;
        }
        nr = tb->gpr[RAX];
        gate_args(tb, a);
        e = next_mine(t);
    }
    if (unlikely(t->seccomp.mode)) {
        long verdict = seccomp_apply(tb, nr, a);
        if (verdict == SECCOMP_DELIVERED) return;
        if (verdict != SECCOMP_ALLOWED) {
            finish(tb, next, flags, verdict);
            return;
        }
    }
    switch (nr) {
    case __NR_exit:
    case __NR_exit_group: exit_call(t); break;
    case __NR_fork:
    case __NR_vfork:
    case __NR_clone:
    case __NR_clone3:
        if (read_clone(nr, a).flags & CLONE_VM)
            clone_call(tb, nr, a, next, flags);
        else
            fork_call(tb, nr, a, next, flags);
        break;
    case __NR_execve:
    case __NR_execveat: exec_call(tb, nr, a, next, flags); break;
    case __NR_rt_sigreturn:
        take_call(t, e, nr, a);
        signals_sigreturn(tb, a);
        arm(t);
        break;
    default:
        if (unlikely(e->kind == EV_END || e->kind == EV_EXIT)) on_death(t, SIGKILL_); /* it kills itself */
        ordinary(tb, e, nr, a, next, flags);
    }
}

static void on_syscall(struct tblock *tb) {
    struct thread *t = tb->thread;
    if (unlikely(debug_is_on)) debug_op(t, true);
    if (debug_is_diverted) {
        uint64_t nr = tb->gpr[RAX], a[6], flags = flags_at_call(tb);
        gaddr next = tb->pc;
        gate_args(tb, a);
        finish(tb, next, flags, debug_call(tb, nr, a));
        set_budget(t);
        return;
    }
    answer_call(tb);
}

void replay_enter_call(void) {
    struct tblock *tb = thread_self()->tb;
    answer_call(tb);
    engine_run(tb);
}

static long on_legacy(struct tblock *tb, uint32_t nr, const uint64_t a[6]) {
    struct thread *t = tb->thread;
    struct ev_syscall s = take_call(t, next_mine(t), LEGACY_CALL + nr, a);
    take_outs(t, s.outs);
    arm(t);
    return s.ret;
}

/* ---- start ---- */

static const struct event *expect(struct thread *t, enum event_kind kind) {
    const struct event *e = stream_peek();
    if (!e) cut_off();
    if (e->kind != kind) diverged(t, e, "begin of a program", e->kind, kind);
    return e;
}

void replay_restore_map(struct thread *t, const struct ev_map *v) {
    struct mapping m = {.start = v->start,
                        .end = v->end,
                        .offset = v->offset,
                        .prot = v->prot & ~MAP_UNSURE,
                        .flags = v->flags,
                        .file = {v->dev, v->ino, v->size, v->mtime_ns, v->ctime_ns, 0},
                        .was_writable = v->prot & MAP_UNSURE};
    memcpy(m.name, v->name, sizeof m.name - 1);
    if (!is_unnamed(&v->object))
        file_changes_note(&(struct ev_mapped){.object = v->object, .dev = v->dev, .ino = v->ino, .size = v->size});
    int fd = is_unnamed(&v->object) ? -1 : objects_open(&v->object);
    if (debug_is_on) m.flags = (m.flags & ~(uint32_t)MAP_TYPE) | MAP_PRIVATE; /* as in map_again() */
    long ret = aspace_restore(&m, fd, 0);
    if (ret) diverged(t, NULL, "the program cannot be mapped", v->start, (uint64_t)-ret);
    if (fd >= 0) SYS(close, fd);
}

static void show_as(const struct ev_start *s) {
    char comm[16];
    memcpy(comm, s->comm, sizeof comm);
    comm[15] = '\0';
    SYS(prctl, PR_SET_NAME, comm, 0, 0, 0);
}

void replay_start(struct thread *t, uint64_t stream) {
    struct ksigaction ignore = {.handler = 1};
    SYS(rt_sigaction, 17 /* SIGCHLD: nobody waits for the processes of a replay */, &ignore, 0, 8);
    if (!stream_attach_reader(fd_own() + 1, stream)) { /* killed, or the recording ended, before it had begun */
        if (stream == 0) die("the recording is empty");
        SYS(exit_group, 0);
    }
    schedule_start(t);
    struct ev_start s = *(const struct ev_start *)(expect(t, EV_START) + 1);
    stream_take();
    show_as(&s);
    for (uint32_t i = 0; i < s.n_maps; i++) {
        replay_restore_map(t, (const struct ev_map *)(expect(t, EV_MAP) + 1));
        stream_take();
    }
    for (uint32_t i = 0; i < s.n_memory; i++) {
        put(t, expect(t, EV_MEMORY));
        stream_take();
    }
    aspace_set_brk(s.brk_start);
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
    arm(t);
    engine_run(t->tb);
}

const struct mode mode_replay = {
    .name = "replay",
    .policy = &policy_order,
    .same_x87 = true,
    .syscall = on_syscall,
    .tick_budget = on_tick_budget,
    .insn = on_insn,
    .legacy = on_legacy,
    .fault = on_fault,
    .before_signal = before_signal,
    .signal = on_signal,
    .thread_killed = thread_killed,
    .death = on_death,
    .acquire = acquire,
    .access = access,
};

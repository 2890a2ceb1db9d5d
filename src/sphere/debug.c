#include "sphere/debug.h"

#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/channel.h"
#include "sphere/contents.h"
#include "sphere/debug_condition.h"
#include "sphere/debug_parts.h"
#include "sphere/debug_state.h"
#include "sphere/debug_watch.h"
#include "sphere/fork_advice.h"
#include "sphere/gate.h"
#include "sphere/replay.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/signals.h"

#define CHUNK 200000 /* ticks between looks at the clock and at what the timeline wants: about half a millisecond */
#define SPIN 300
#define LOOK_EVERY 256 /* instructions */
#define SIGKILL_ 9
#define SYSCALL_LEN 2
#define SIGCHLD_ 17

bool debug_is_on, debug_is_diverted;

static struct worker_control *control;
struct worker_slot *debug_slot;
static bool is_begun;               /* the program to be debugged is here */
static bool stop_soon;              /* at the next instruction boundary... */
static enum worker_reason soon_why; /* ... for this */

struct worker_run debug_run;
static gaddr from_pc; /* where it began */
static uint64_t from_rsp, from_ticks, from_event, began_us;
uint64_t debug_hits;

/* Where we are since the last event. */
static struct {
    uint64_t event, ticks; /* when that was over */
    uint32_t thread;       /* who has run since */
    bool is_fresh;         /* nothing was run since */
    bool is_known;         /* steps since `steps_ticks` are known */
    uint64_t steps, steps_ticks;
} base;

static struct worker_place here, before; /* at the last two instruction boundaries that were looked at */
static uint64_t work;

/* ---- places ---- */

/* Whoever is about to get a signal in a call has not run since the last event: another R-thread has, up to a call of its own. */
static const struct thread *runner(const struct thread *t) {
    bool is_other = stream_taken() == base.event && base.thread != t->number;
    const struct thread *other = is_other ? state_thread(base.thread) : NULL;
    return other ? other : t;
}

struct worker_place debug_place(const struct thread *t) {
    struct worker_place p = {.event = stream_taken(), .ticks = ticks_total(runner(t)->tb), .thread = t->number};
    if (p.event != base.event || base.is_fresh) {
        p.is_exact = 1;
    } else if (base.is_known && p.ticks == base.steps_ticks) {
        p.is_exact = 1;
        p.steps = base.steps;
    }
    return p;
}

static int compare(const struct worker_place *p, uint64_t event, uint64_t ticks, uint64_t steps) {
    if (p->event != event) return p->event < event ? -1 : 1;
    if (p->ticks != ticks) return p->ticks < ticks ? -1 : 1;
    return p->steps < steps ? -1 : p->steps > steps;
}

static void count_work(struct thread *t) {
    uint64_t now = ticks_total(t->tb);
    work += now - t->debugged.counted;
    t->debugged.counted = now;
}

void debug_see(struct thread *t) {
    t->debugged.pc = t->tb->pc;
    t->debugged.rsp = t->tb->gpr[RSP];
    t->debugged.ticks = ticks_total(t->tb);
}

void debug_stop_soon(enum worker_reason why) {
    stop_soon = true;
    soon_why = why;
}

static bool has_moved(const struct thread *t, gaddr pc, uint64_t rsp, uint64_t ticks) {
    return t->tb->pc != pc || t->tb->gpr[RSP] != rsp || ticks_total(t->tb) != ticks;
}

/* At an instruction boundary, with one instruction at most since the last one that was looked at. True: it was done. */
static bool track(struct thread *t) {
    uint64_t now = ticks_total(t->tb);
    bool moved = has_moved(t, t->debugged.pc, t->debugged.rsp, t->debugged.ticks);
    if (base.is_fresh || now != t->debugged.ticks) {
        base.is_fresh = false;
        base.is_known = true;
        base.steps = 0;
        base.steps_ticks = now;
    } else if (moved) {
        base.steps++;
    }
    if (moved) t->debugged.once = false;
    debug_see(t);
    before = here;
    here = debug_place(t);
    return moved;
}

/* ---- talking to the timeline ---- */

static uint64_t now_us(void) {
    int64_t t[2];
    SYS(clock_gettime, 1 /* CLOCK_MONOTONIC */, t);
    return (uint64_t)t[0] * 1000000 + (uint64_t)t[1] / 1000;
}

static void answer(uint64_t value) {
    debug_slot->answer = value;
    __atomic_add_fetch(&debug_slot->answered, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&the_channel->doorbell, 1, __ATOMIC_RELEASE);
    SYS(futex, &the_channel->doorbell, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

static void await_question(void) {
    for (int i = 0; i < SPIN; i++) {
        if (__atomic_load_n(&debug_slot->asked, __ATOMIC_ACQUIRE) != debug_slot->answered) return;
        __builtin_ia32_pause();
    }
    for (uint32_t seen; (seen = __atomic_load_n(&debug_slot->asked, __ATOMIC_ACQUIRE)) == debug_slot->answered;)
        SYS(futex, &debug_slot->asked, FUTEX_WAIT, seen, 0, 0, 0);
}

/* A copy of this process, which stands still where we do. Its parent is ours, so that our end is none of its business. */
static long fork_worker(uint64_t number) {
    if (number >= WORKER_SLOTS) return -EINVAL;
    fork_advice_lift();
    long pid = SYS(clone, CLONE_PARENT | SIGCHLD_, 0, 0, 0, 0);
    fork_advice_put_back();
    if (pid) return pid;
    SYS(prctl, PR_SET_PDEATHSIG, SIGKILL_, 0, 0, 0);
    struct worker_slot *parent = debug_slot;
    debug_slot = (struct worker_slot *)(control + 1) + number;
    debug_slot->stop = parent->stop;
    debug_slot->pid = (uint32_t)SYS(getpid);
    stream_pause();
    contents_after_fork();
    return 0;
}

static void describe(struct thread *t, enum worker_reason why) {
    struct worker_stop *s = &debug_slot->stop;
    s->reason = why;
    s->tid = t->tid;
    s->place = debug_place(t);
    s->before = compare(&here, s->place.event, s->place.ticks, s->place.steps) < 0 ? here : before;
    s->base_ticks = s->place.event == base.event ? base.ticks : s->place.ticks;
    s->op_event = t->debugged.op_event;
    s->op_ticks = t->debugged.op_ticks;
    s->has_op = t->debugged.has_op;
    s->is_anothers = runner(t) != t;
    s->is_again = s->has_op && s->place.is_exact && !s->place.steps && s->place.ticks == s->op_ticks &&
                  t->tb->pc == t->debugged.op_pc;
    s->is_inside = why == WORKER_WATCH && access_stops_inside();
    s->copied = contents_pages();
    s->work = work + s->place.event * 16;
    memcpy(s->gpr, t->tb->gpr, sizeof s->gpr);
    s->pc = t->tb->pc;
    s->rflags = state_flags(t);
}

static bool hits_break(struct thread *t);
static enum worker_reason behind_call(struct thread *t);
static enum worker_reason behind_fork(struct thread *t);

/* The run that is asked for begins. False: it is over already. */
static bool begin_run(struct thread *t) {
    bool was_fork = debug_slot->stop.reason == WORKER_FORK;
    debug_run = debug_slot->run;
    if (!debug_run.goes_on) debug_hits = 0;
    debug_slot->stop.collected = 0;
    const struct thread *who = debug_run.step ? state_thread(debug_run.thread) : t;
    if (!who) who = t;
    from_pc = who->tb->pc;
    from_rsp = who->tb->gpr[RSP];
    from_ticks = ticks_total(who->tb);
    from_event = stream_taken();
    began_us = now_us();
    here = debug_place(t);
    stop_soon = false;
    access_goes_on();
    debug_see(t);
    t->debugged.once = false;
    debug_slot->stop.traced = 0;
    if (debug_run.trace) past_remember(t, &here);
    if (debug_run.trace_all && past_ends()) {
        describe(t, WORKER_ARRIVED);
        return false;
    }
    enum worker_reason why = debug_run.fresh ? behind_call(t) : was_fork ? behind_fork(t) : WORKER_NONE;
    if (why == WORKER_NONE && debug_run.fresh && hits_break(t)) why = WORKER_BREAK;
    if (why != WORKER_NONE) {
        describe(t, why);
        return false;
    }
    if (watch_has_break(t->tb->pc)) t->debugged.once = true;
    stream_resume();
    return true;
}

static uint64_t handle(struct thread *t) {
    const uint64_t *arg = debug_slot->arg;
    switch (debug_slot->ask) {
    case ASK_REGISTERS: return state_registers(t, (uint32_t)arg[0], (void *)debug_slot->data, WORKER_DATA);
    case ASK_SET_REGISTERS: return state_set_registers(t, (uint32_t)arg[0], (void *)debug_slot->data);
    case ASK_READ: return state_read(arg[0], debug_slot->data, MIN(arg[1], WORKER_DATA));
    case ASK_WRITE: return state_write(arg[0], debug_slot->data, MIN(arg[1], WORKER_DATA));
    case ASK_THREADS: return state_threads(t, (void *)debug_slot->data, WORKER_DATA);
    case ASK_REGIONS: return state_regions(arg[0], (void *)debug_slot->data, WORKER_DATA);
    case ASK_HASH: return state_hash();
    case ASK_SHARED: return state_shared(arg[0], arg[1], (void *)debug_slot->data, WORKER_DATA);
    case ASK_ELSEWHERE: return state_is_elsewhere(arg[0]);
    case ASK_DIVERT:
        debug_is_diverted = true;
        shared_abandon();
        return 1;
    case ASK_BREAKS:
        watch_set((void *)debug_slot->data, MIN(arg[0], WORKER_DATA / sizeof(struct worker_break)), arg[1]);
        return 1;
    case ASK_CONDITIONS: condition_set(debug_slot->data, MIN(arg[0], WORKER_DATA), arg[1]); return 1;
    default: return 0;
    }
}

/* What we looked at for the timeline is none of the program's accesses. */
static void close_quietly(void) {
    gaddr addr;
    if (watch_is_open()) watch_close(&addr);
}

/* Does what the timeline asks, until it asks to debug_run. */
static void serve(struct thread *t) {
    for (;;) {
        await_question();
        if (debug_slot->ask == ASK_RUN) {
            close_quietly();
            if (begin_run(t)) return;
            answer(0);
        } else if (debug_slot->ask == ASK_FORK) {
            answer((uint64_t)fork_worker(debug_slot->arg[0]));
        } else {
            answer(handle(t));
        }
    }
}

static void stop(struct thread *t, enum worker_reason why) {
    count_work(t);
    past_hide_host_word(t);
    close_quietly();
    describe(t, why);
    answer(0);
    serve(t);
}

/* Says that the page log is wanted, and waits for an answer. */
static uint32_t want_pages(void) {
    uint32_t unknown = PAGES_UNKNOWN, state;
    __atomic_compare_exchange_n(&control->pages, &unknown, PAGES_WANTED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    __atomic_fetch_add(&the_channel->doorbell, 1, __ATOMIC_RELEASE);
    SYS(futex, &the_channel->doorbell, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
    while ((state = __atomic_load_n(&control->pages, __ATOMIC_ACQUIRE)) == PAGES_WANTED)
        SYS(futex, &control->pages, FUTEX_WAIT, PAGES_WANTED, 0, 0, 0);
    return state;
}

int debug_page_log(struct thread *t) {
    char path[64];
    uint32_t state;
    while ((state = want_pages()) == PAGES_INTERRUPTED) {
        __atomic_compare_exchange_n(&control->pages, &state, PAGES_UNKNOWN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        if (is_begun) stop(t, WORKER_INTERRUPTED);
    }
    if (state != PAGES_READY) return -1;
    fmt_into(path, sizeof path, "/proc/%u/fd/%u", the_channel->controller, control->pages_fd);
    return (int)SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

void debug_end(struct thread *t, enum worker_reason why, int status, const char *text) {
    debug_slot->stop.status = status;
    fmt_into(debug_slot->stop.text, sizeof debug_slot->stop.text, "%s", text);
    before = here;
    for (;;) {
        gaddr pc = t->tb->pc;
        stop(t, why);
        if (debug_is_diverted && t->tb->pc != pc) { /* the debugger calls a function all the same */
            replay_set_budget(t);
            engine_run(t->tb);
        }
    }
}

/* ---- breakpoints and watchpoints ---- */

void debug_remember_hit(struct worker_hit hit) {
    ((struct worker_hit *)debug_slot->data)[debug_slot->stop.collected++ % WORKER_HITS] = hit;
}

/* Whether to stop for it. */
static bool count_hit(struct thread *t, enum worker_reason why, gaddr addr) {
    uint64_t number = ++debug_hits;
    debug_slot->stop.addr = addr;
    if (debug_run.stop_at) return number == debug_run.stop_at;
    if (!debug_run.collect) return true;
    struct worker_place p = debug_place(t);
    debug_remember_hit((struct worker_hit){
        .number = number, .reason = why, .addr = addr, .place = p, .pc = t->tb->pc, .from_ticks = p.ticks});
    return false;
}

/* What is read for a condition is none of the program's accesses. */
static bool is_true_here(const struct thread *t) {
    bool was_open = watch_is_open(), holds = condition_holds(t);
    if (!was_open) close_quietly();
    return holds;
}

static bool hits_break(struct thread *t) {
    return watch_has_break(t->tb->pc) && is_true_here(t) && count_hit(t, WORKER_BREAK, t->tb->pc);
}

/* ---- system calls ---- */

static bool is_caught(uint64_t nr) { return nr < WORKER_CALLS && debug_run.catches.calls[nr / 64] >> nr % 64 & 1; }

/* In front of a call: something else came first, a checkpoint for instance, and one has stopped before that. */
static bool is_made_again(const struct thread *t) {
    return t->debugged.has_op && t->debugged.op_pc == t->tb->pc && t->debugged.op_ticks == ticks_total(t->tb);
}

bool debug_call_begins(struct thread *t) {
    struct tblock *tb = t->tb;
    t->debugged.call = tb->gpr[RAX];
    if (!is_begun || debug_run.step || t->legacy.under_way || !is_caught(tb->gpr[RAX])) return true;
    gaddr next = tb->pc;
    gate_retry(tb, next);
    bool is_begin = tb->pc == from_pc && ticks_total(tb) == from_ticks && stream_taken() == from_event;
    if ((is_begin && !debug_run.fresh) || is_made_again(t) || !count_hit(t, WORKER_CALL, 0)) {
        tb->pc = next;
        return true;
    }
    debug_see(t);
    debug_slot->stop.call = (uint32_t)tb->gpr[RAX];
    tb->debug = stop_soon = true;
    soon_why = WORKER_CALL;
    return false;
}

/* The process that the call has made; 0: none. */
static int made_process(const struct thread *t) {
    const struct tblock *tb = t->tb;
    uint64_t flags = tb->gpr[RDI];
    int64_t pid = (int64_t)tb->gpr[RAX];
    switch (t->debugged.call) {
    case __NR_fork:
    case __NR_vfork: break;
    case __NR_clone3:
        if (!guest_read(&flags, tb->gpr[RDI], sizeof flags)) return 0;
        /* fallthrough */
    case __NR_clone:
        if (flags & CLONE_THREAD) return 0;
        break;
    default: return 0;
    }
    return pid > 0 && pid <= INT32_MAX ? (int)pid : 0;
}

/* Whether to stop here because a system call is over. */
static enum worker_reason behind_call(struct thread *t) {
    struct worker_place p = debug_place(t);
    bool is_behind = t->debugged.returned && t->debugged.returned == p.event && p.event == base.event;
    if (!is_behind || !p.is_exact || p.ticks != base.ticks || p.steps) return WORKER_NONE;
    int child = debug_run.catches.forks ? made_process(t) : 0;
    debug_slot->stop.call = (uint32_t)t->debugged.call;
    debug_slot->stop.child = child;
    if (child && count_hit(t, WORKER_FORK, 0)) return WORKER_FORK;
    return is_caught(t->debugged.call) && count_hit(t, WORKER_RETURN, 0) ? WORKER_RETURN : WORKER_NONE;
}

/* One has stopped for the process that was made. That the call is over comes next. */
static enum worker_reason behind_fork(struct thread *t) {
    bool is_over = !debug_run.step && is_caught(t->debugged.call);
    return is_over && count_hit(t, WORKER_RETURN, 0) ? WORKER_RETURN : WORKER_NONE;
}

static bool has_catches(void) {
    uint64_t any = debug_run.catches.forks;
    for (size_t i = 0; i < WORKER_CALLS / 64; i++) any |= debug_run.catches.calls[i];
    return any;
}

void debug_mapped(void) {
    if (debug_is_on) watch_remap();
}

/* ---- running ---- */

static bool wants_step(const struct thread *t) {
    if (t->debugged.once || debug_run.single) return true;
    if (debug_run.step && t->number == debug_run.thread) return true;
    return debug_run.aim && stream_taken() == debug_run.event && ticks_total(t->tb) == debug_run.ticks;
}

static bool is_match(const struct thread *t) {
    if (!debug_run.match || t->tb->pc != debug_run.match_pc || t->tb->gpr[RSP] != debug_run.match_gpr[RSP])
        return false;
    return debug_run.match == MATCH_PLACE || memcmp(t->tb->gpr, debug_run.match_gpr, sizeof debug_run.match_gpr) == 0;
}

static bool is_past_aim(const struct worker_place *p) {
    if (!debug_run.aim) return false;
    uint64_t steps = p->is_exact ? debug_run.steps : UINT64_MAX;
    return compare(p, debug_run.event, debug_run.ticks, steps) >= 0;
}

/* How the R-thread goes on. */
static void direct(struct thread *t) {
    struct worker_place p = {stream_taken(), ticks_total(t->tb), 0, 0, 0};
    bool past = debug_run.aim && compare(&p, debug_run.event, debug_run.ticks, 0) > 0;
    t->tb->debug_step = wants_step(t) || replay_is_seeking(t);
    bool returns = base.is_fresh && t->debugged.returned == base.event && has_catches();
    t->tb->debug = t->tb->debug_step || past || stop_soon || returns || watch_is_open();
    if (!t->tb->debug) base.is_known = base.is_fresh = false;
}

static bool is_interrupted(void) { return !debug_run.steady && __atomic_load_n(&control->interrupt, __ATOMIC_ACQUIRE); }

static void look_around(void) {
    if (is_interrupted()) {
        stop_soon = true;
        soon_why = WORKER_INTERRUPTED;
    } else if (debug_run.pause_us && now_us() - began_us >= debug_run.pause_us) {
        stop_soon = true;
        soon_why = WORKER_PAUSED;
    }
}

/* Whether the R-thread may go on behind the exit at once: nobody counts or looks at what it does next. A step takes thirty times as
 * long, which tells where a condition is false a million times. */
static bool may_pass(struct thread *t) {
    static uint32_t passed;
    if (++passed % LOOK_EVERY == 0 && !stop_soon) look_around();
    direct(t);
    return !t->tb->debug && !t->tb->is_due && !t->tb->trap_flag;
}

enum break_end debug_break(struct tblock *tb) {
    struct thread *t = tb->thread;
    cache_idle(tb);
    debug_see(t);
    if (!watch_has_break(tb->pc)) {
        engine_drop_block(tb->pc);
        return BREAK_ELSEWHERE;
    }
    if (hits_break(t)) {
        stop(t, WORKER_BREAK);
        replay_set_budget(t);
    } else if (may_pass(t)) {
        tb->skip_break = true;
        return BREAK_ELSEWHERE;
    }
    t->debugged.once = true;
    tb->debug = tb->debug_step = true;
    return BREAK_ELSEWHERE;
}

bool debug_break_without_code(struct tblock *tb) {
    struct thread *t = tb->thread;
    bool is_begin = tb->pc == from_pc && ticks_total(tb) == from_ticks;
    if (!debug_is_diverted || is_begin || !hits_break(t)) return false;
    cache_idle(tb);
    debug_see(t);
    stop(t, WORKER_BREAK);
    replay_set_budget(t);
    return true;
}

uint64_t debug_budget(struct thread *t, uint64_t n) {
    if (!is_begun) return n;
    uint64_t taken = stream_taken(), now = ticks_total(t->tb);
    if (taken != base.event) {
        count_work(t);
        base.event = taken;
        base.ticks = now;
        base.thread = t->number;
        base.is_fresh = true;
        t->debugged.returned = t->debugged.in_call ? taken : 0;
        t->debugged.in_call = false;
        watch_events_taken();
        if ((taken & 63) == 0 || is_interrupted()) look_around();
    }
    direct(t);
    if (t->tb->debug_step) return n;
    uint64_t most = CHUNK;
    if (debug_run.aim && taken == debug_run.event && now < debug_run.ticks) most = MIN(most, debug_run.ticks - now - 1);
    return MIN(n, most);
}

static void undo_access(const struct thread *t) {
    if (access_is_undone(t) && !has_moved(t, t->debugged.pc, t->debugged.rsp, t->debugged.ticks)) access_undo();
}

void debug_tick(struct thread *t) {
    if (!is_begun) return;
    undo_access(t);
    count_work(t);
    debug_see(t);
    look_around();
    bool is_last = debug_run.aim && stream_taken() == debug_run.event && ticks_total(t->tb) + 1 == debug_run.ticks;
    if (is_last || stop_soon) t->debugged.once = true;
}

void debug_thread_ended(struct thread *t) {
    if (!is_begun || !debug_run.step || debug_run.thread != t->number) return;
    stop_soon = true; /* whoever goes on */
    soon_why = WORKER_STEPPED;
}

static void note_name(struct thread *t) {
    if (t->tb->gpr[RAX] == __NR_prctl && t->tb->gpr[RDI] == PR_SET_NAME) thread_take_name(t, t->tb->gpr[RSI]);
}

void debug_op(struct thread *t, bool is_call) {
    if (is_call) note_name(t);
    if (!is_begun) return;
    if (is_call && debug_is_diverted && is_interrupted()) look_around(); /* no events are taken, and calls in a loop deal out ticks anew */
    if (!is_call) undo_access(t);
    /* an instruction that was done without coming by: the program has its own trap flag set */
    bool done = !is_call && t->tb->debug_step && has_moved(t, t->debugged.pc, t->debugged.rsp, t->debugged.ticks);
    if (done && stream_taken() == base.event) track(t);
    t->debugged.op_event = stream_taken();
    t->debugged.op_ticks = ticks_total(t->tb);
    t->debugged.op_pc = is_call ? t->tb->pc - SYSCALL_LEN : t->tb->pc;
    t->debugged.has_op = true;
    t->debugged.in_call = is_call;
}

void debug_call_undone(struct thread *t) { t->debugged.in_call = false; }

static bool is_wanted(int signo) { return signo > 0 && signo <= NSIG_MAX && debug_run.signals >> (signo - 1) & 1; }

bool debug_signal(struct thread *t, const struct siginfo_raw *info, enum signal_place where) {
    if (!is_begun) return true;
    gaddr pc = t->tb->pc;
    debug_slot->stop.has_siginfo = 1;
    debug_slot->stop.is_fault = where == SIGNAL_OF_FAULT;
    debug_slot->stop.signo = info->signo;
    memcpy(debug_slot->stop.siginfo, info, sizeof debug_slot->stop.siginfo);
    struct worker_place p = debug_place(t);
    if (where == SIGNAL_BEHIND) {
        before = here;
        here = p;
    }
    if (is_past_aim(&p) || is_match(t)) stop(t, WORKER_ARRIVED);
    if (is_wanted(info->signo) && count_hit(t, WORKER_SIGNAL, 0)) stop(t, WORKER_SIGNAL);
    return !debug_is_diverted || t->tb->pc == pc;
}

/* Whether the step that was asked for is done. Inside a line whose instructions are all to be done it begins anew. */
static bool has_stepped(const struct thread *t) {
    if (!debug_run.step || t->number != debug_run.thread || !has_moved(t, from_pc, from_rsp, from_ticks)) return false;
    gaddr pc = t->tb->pc;
    if (pc - debug_run.within_start >= debug_run.within_end - debug_run.within_start || watch_has_break(pc))
        return true;
    from_pc = pc;
    from_rsp = t->tb->gpr[RSP];
    from_ticks = ticks_total(t->tb);
    return false;
}

/* Why to stop at this instruction boundary, which is a new one or not. */
static enum worker_reason why_stop(struct thread *t, bool moved) {
    bool arrived = is_past_aim(&here) || is_match(t), waits = access_is_coming() && !moved;
    if (waits && !arrived) return WORKER_NONE; /* the page has come, the instruction that needs it comes now */
    if (watch_is_open() || access_is_under_way()) {
        bool by_op = !access_is_under_way() || waits;
        if (access_end(t, by_op)) return WORKER_WATCH;
    }
    if (arrived) return WORKER_ARRIVED;
    if (has_stepped(t)) return WORKER_STEPPED;
    enum worker_reason call = moved && !debug_run.step ? behind_call(t) : WORKER_NONE;
    if (call != WORKER_NONE) return call;
    bool own_step = debug_run.step && t->number == debug_run.thread;
    if (moved && wants_step(t) && !own_step && hits_break(t)) return WORKER_BREAK;
    bool anywhere = soon_why == WORKER_WATCH || soon_why == WORKER_CALL;
    if (stop_soon && (here.is_exact || anywhere)) return soon_why;
    return WORKER_NONE;
}

void debug_enter(struct tblock *tb) {
    static uint32_t entries;
    struct thread *t = tb->thread;
    if (unlikely(replay_seeks_death(tb))) return;
    if (++entries % LOOK_EVERY == 0 && !stop_soon) look_around(); /* budgets that begin anew do not end */
    undo_access(t);
    bool moved = track(t);
    if (moved && debug_run.trace) past_remember(t, &here);
    enum worker_reason why = why_stop(t, moved);
    if (why == WORKER_NONE && moved && debug_run.trace_all && past_ends()) why = WORKER_ARRIVED;
    if (why != WORKER_NONE) {
        stop(t, why);
        replay_set_budget(t);
    } else if (!tb->debug_step || !wants_step(t)) {
        replay_set_budget(t);
    }
    direct(t);
    if (stop_soon && !tb->debug_step) tb->debug_step = t->debugged.once = true; /* until the place is exact */
    watch_filter_hot();
}

/* ---- start ---- */

void debug_start(int fd, uint32_t number) {
    long got = SYS(mmap, LAYOUT_WORKERS, WORKER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    if (got != (long)LAYOUT_WORKERS) die("cannot map the memory shared with the debugger (error %ld)", -got);
    control = (struct worker_control *)got;
    if (control->magic != WORKER_MAGIC) die("this runtime and its controller are of different versions");
    SYS(close, fd);
    if (number >= WORKER_SLOTS) die("no such worker");
    debug_slot = (struct worker_slot *)(control + 1) + number;
    debug_slot->pid = (uint32_t)SYS(getpid);
    debug_is_on = true;
    /* what the terminal sends is for the debugger */
    static const uint8_t ignored[] = {1, 2, 3, 13, 20, 21, 22};
    struct ksigaction ignore = {.handler = 1};
    for (size_t i = 0; i < sizeof ignored; i++) SYS(rt_sigaction, ignored[i], &ignore, 0, 8);
}

bool debug_begin(struct thread *t) {
    if (!debug_is_on || the_stream.number != control->target) return false;
    is_begun = true;
    stop_soon = true;
    soon_why = WORKER_ARRIVED;
    base.event = UINT64_MAX;
    return true;
}

void debug_begin_at(struct thread *t, uint64_t ticks) {
    if (!debug_begin(t)) return;
    work = ticks;
}

bool debug_follows(uint64_t stream) {
    for (uint32_t i = 0; i < control->n_chain && i < WORKER_CHAIN; i++)
        if (control->chain[i] == stream) return true;
    return false;
}

bool debug_is_quiet(void) { return !is_begun || control->quiet; }

#include "sphere/debug.h"

#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include "engine/store_filter.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/channel.h"
#include "sphere/contents.h"
#include "sphere/debug_condition.h"
#include "sphere/debug_state.h"
#include "sphere/debug_watch.h"
#include "sphere/fork_advice.h"
#include "sphere/gate.h"
#include "sphere/replay.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/sigframe.h"
#include "sphere/signals.h"

#define CHUNK 200000 /* ticks between looks at the clock and at what the timeline wants: about half a millisecond */
#define SPIN 300
#define LOOK_EVERY 256 /* instructions */
#define DIRECTION_FLAG (1ull << 10)
#define SIGKILL_ 9
#define SYSCALL_LEN 2
#define SIGCHLD_ 17

bool debug_is_on, debug_is_diverted;

static struct worker_control *control;
static struct worker_slot *slot;
static bool is_begun;               /* the program to be debugged is here */
static bool stop_soon;              /* at the next instruction boundary... */
static enum worker_reason soon_why; /* ... for this */

static struct worker_run run;
static gaddr from_pc; /* where it began */
static uint64_t from_rsp, from_ticks, from_event, began_us;
static uint64_t hits;

/* A watched page was opened by an instruction of the program. */
static struct {
    bool is_under_way;
    uint64_t number; /* of the hit, if it is one */
    bool is_access;  /* the access counts, even if it changes nothing */
    bool is_coming;  /* the page has to come from another process first: the instruction is tried again then */
    gaddr addr;
    gaddr pc; /* of the instruction */
    uint64_t ticks;
    bool
        is_repeated; /* it is a string instruction: what it touches is known when it is done, by where these are then */
    uint64_t rsi, rdi;
    bool stops_inside; /* the run stops while it is partly done */
} access;

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

static bool decode_next(struct insn *in, gaddr pc) {
    uint8_t bytes[INSN_MAX_LEN];
    size_t n = sizeof bytes;
    n = state_read(pc, bytes, n);
    return n && decode_insn(in, bytes, n, pc);
}

/* ---- places ---- */

/* Whoever is about to get a signal in a call has not run since the last event: another R-thread has, up to a call of its own. */
static const struct thread *runner(const struct thread *t) {
    bool is_other = stream_taken() == base.event && base.thread != t->number;
    const struct thread *other = is_other ? state_thread(base.thread) : NULL;
    return other ? other : t;
}

static struct worker_place place_of(const struct thread *t) {
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

static void see(struct thread *t) {
    t->debugged.pc = t->tb->pc;
    t->debugged.rsp = t->tb->gpr[RSP];
    t->debugged.ticks = ticks_total(t->tb);
}

static bool has_moved(const struct thread *t, gaddr pc, uint64_t rsp, uint64_t ticks) {
    return t->tb->pc != pc || t->tb->gpr[RSP] != rsp || ticks_total(t->tb) != ticks;
}

/* Keeps what the instruction that comes next works on, for whoever asks how registers came about. */
static void remember(const struct thread *t) {
    const struct tblock *tb = t->tb;
    struct insn in;
    if (run.trace_writes && (!decode_next(&in, tb->pc) || !(in.gpr_write & run.trace_writes))) return;
    struct worker_past *p = (struct worker_past *)slot->data + slot->stop.traced++ % WORKER_PAST;
    *p = (struct worker_past){.ticks = here.ticks, .steps = here.steps, .pc = tb->pc, .rflags = tb->rflags};
    memcpy(p->gpr, tb->gpr, sizeof p->gpr);
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
    see(t);
    before = here;
    here = place_of(t);
    return moved;
}

/* ---- talking to the timeline ---- */

static uint64_t now_us(void) {
    int64_t t[2];
    SYS(clock_gettime, 1 /* CLOCK_MONOTONIC */, t);
    return (uint64_t)t[0] * 1000000 + (uint64_t)t[1] / 1000;
}

static void answer(uint64_t value) {
    slot->answer = value;
    __atomic_add_fetch(&slot->answered, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&the_channel->doorbell, 1, __ATOMIC_RELEASE);
    SYS(futex, &the_channel->doorbell, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

static void await_question(void) {
    for (int i = 0; i < SPIN; i++) {
        if (__atomic_load_n(&slot->asked, __ATOMIC_ACQUIRE) != slot->answered) return;
        __builtin_ia32_pause();
    }
    for (uint32_t seen; (seen = __atomic_load_n(&slot->asked, __ATOMIC_ACQUIRE)) == slot->answered;)
        SYS(futex, &slot->asked, FUTEX_WAIT, seen, 0, 0, 0);
}

/* A copy of this process, which stands still where we do. Its parent is ours, so that our end is none of its business. */
static long fork_worker(uint64_t number) {
    if (number >= WORKER_SLOTS) return -EINVAL;
    fork_advice_lift();
    long pid = SYS(clone, CLONE_PARENT | SIGCHLD_, 0, 0, 0, 0);
    fork_advice_put_back();
    if (pid) return pid;
    SYS(prctl, PR_SET_PDEATHSIG, SIGKILL_, 0, 0, 0);
    struct worker_slot *parent = slot;
    slot = (struct worker_slot *)(control + 1) + number;
    slot->stop = parent->stop;
    slot->pid = (uint32_t)SYS(getpid);
    stream_pause();
    contents_after_fork();
    return 0;
}

static void describe(struct thread *t, enum worker_reason why) {
    struct worker_stop *s = &slot->stop;
    s->reason = why;
    s->tid = t->tid;
    s->place = place_of(t);
    s->before = compare(&here, s->place.event, s->place.ticks, s->place.steps) < 0 ? here : before;
    s->base_ticks = s->place.event == base.event ? base.ticks : s->place.ticks;
    s->op_event = t->debugged.op_event;
    s->op_ticks = t->debugged.op_ticks;
    s->has_op = t->debugged.has_op;
    s->is_anothers = runner(t) != t;
    s->is_again = s->has_op && s->place.is_exact && !s->place.steps && s->place.ticks == s->op_ticks &&
                  t->tb->pc == t->debugged.op_pc;
    s->is_inside = why == WORKER_WATCH && access.stops_inside;
    s->copied = contents_pages();
    s->work = work + s->place.event * 16;
    memcpy(s->gpr, t->tb->gpr, sizeof s->gpr);
    s->pc = t->tb->pc;
    s->rflags = state_flags(t);
}

static bool hits_break(struct thread *t);
static enum worker_reason behind_call(struct thread *t);

/* The run that is asked for begins. False: it is over already. */
static bool begin_run(struct thread *t) {
    run = slot->run;
    if (!run.goes_on) hits = 0;
    slot->stop.collected = 0;
    const struct thread *who = run.step ? state_thread(run.thread) : t;
    if (!who) who = t;
    from_pc = who->tb->pc;
    from_rsp = who->tb->gpr[RSP];
    from_ticks = ticks_total(who->tb);
    from_event = stream_taken();
    began_us = now_us();
    here = place_of(t);
    stop_soon = access.stops_inside = false;
    see(t);
    t->debugged.once = false;
    slot->stop.traced = 0;
    if (run.trace) remember(t);
    enum worker_reason why = run.fresh ? behind_call(t) : WORKER_NONE;
    if (why == WORKER_NONE && run.fresh && hits_break(t)) why = WORKER_BREAK;
    if (why != WORKER_NONE) {
        describe(t, why);
        return false;
    }
    if (watch_has_break(t->tb->pc)) t->debugged.once = true;
    stream_resume();
    return true;
}

static uint64_t handle(struct thread *t) {
    const uint64_t *arg = slot->arg;
    switch (slot->ask) {
    case ASK_REGISTERS: return state_registers(t, (uint32_t)arg[0], (void *)slot->data, WORKER_DATA);
    case ASK_SET_REGISTERS: return state_set_registers(t, (uint32_t)arg[0], (void *)slot->data);
    case ASK_READ: return state_read(arg[0], slot->data, MIN(arg[1], WORKER_DATA));
    case ASK_WRITE: return state_write(arg[0], slot->data, MIN(arg[1], WORKER_DATA));
    case ASK_THREADS: return state_threads(t, (void *)slot->data, WORKER_DATA);
    case ASK_REGIONS: return state_regions(arg[0], (void *)slot->data, WORKER_DATA);
    case ASK_HASH: return state_hash();
    case ASK_DIVERT:
        debug_is_diverted = true;
        shared_abandon();
        return 1;
    case ASK_BREAKS:
        watch_set((void *)slot->data, MIN(arg[0], WORKER_DATA / sizeof(struct worker_break)), arg[1]);
        return 1;
    case ASK_CONDITIONS: condition_set(slot->data, MIN(arg[0], WORKER_DATA), arg[1]); return 1;
    default: return 0;
    }
}

/* What we looked at for the timeline is none of the program's accesses. */
static void close_quietly(void) {
    gaddr addr;
    if (watch_is_open()) watch_close(&addr);
}

/* Does what the timeline asks, until it asks to run. */
static void serve(struct thread *t) {
    for (;;) {
        await_question();
        if (slot->ask == ASK_RUN) {
            close_quietly();
            if (begin_run(t)) return;
            answer(0);
        } else if (slot->ask == ASK_FORK) {
            answer((uint64_t)fork_worker(slot->arg[0]));
        } else {
            answer(handle(t));
        }
    }
}

/* Host addresses that a call has left below the stack pointer are overwritten by the next instruction, as a rule, but not all
 * ways into a function leave them. */
static void hide_host_word(struct thread *t) {
    uint64_t word, none = 0, at = t->tb->gpr[RSP] - 8;
    if (!aspace_is_runtime(at, 8) && !shared_is_closed(at) && guest_read(&word, at, 8) && word && cache_contains(word))
        guest_write(at, &none, 8);
}

static void stop(struct thread *t, enum worker_reason why) {
    count_work(t);
    hide_host_word(t);
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
    slot->stop.status = status;
    fmt_into(slot->stop.text, sizeof slot->stop.text, "%s", text);
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

static void remember_hit(struct worker_hit hit) {
    ((struct worker_hit *)slot->data)[slot->stop.collected++ % WORKER_HITS] = hit;
}

/* Whether to stop for it. */
static bool count_hit(struct thread *t, enum worker_reason why, gaddr addr) {
    uint64_t number = ++hits;
    slot->stop.addr = addr;
    if (run.stop_at) return number == run.stop_at;
    if (!run.collect) return true;
    struct worker_place p = place_of(t);
    remember_hit((struct worker_hit){
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

static bool is_caught(uint64_t nr) { return nr < WORKER_CALLS && run.catches.calls[nr / 64] >> nr % 64 & 1; }

/* In front of a call: something else came first, a checkpoint for instance, and one has stopped before that. */
static bool is_made_again(const struct thread *t) {
    return t->debugged.has_op && t->debugged.op_pc == t->tb->pc && t->debugged.op_ticks == ticks_total(t->tb);
}

bool debug_call_begins(struct thread *t) {
    struct tblock *tb = t->tb;
    t->debugged.call = tb->gpr[RAX];
    if (!is_begun || run.step || t->legacy.under_way || !is_caught(tb->gpr[RAX])) return true;
    gaddr next = tb->pc;
    gate_retry(tb, next);
    bool is_begin = tb->pc == from_pc && ticks_total(tb) == from_ticks && stream_taken() == from_event;
    if ((is_begin && !run.fresh) || is_made_again(t) || !count_hit(t, WORKER_CALL, 0)) {
        tb->pc = next;
        return true;
    }
    see(t);
    slot->stop.call = (uint32_t)tb->gpr[RAX];
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
    struct worker_place p = place_of(t);
    bool is_behind = t->debugged.returned && t->debugged.returned == p.event && p.event == base.event;
    if (!is_behind || !p.is_exact || p.ticks != base.ticks || p.steps) return WORKER_NONE;
    int child = run.catches.forks ? made_process(t) : 0;
    slot->stop.call = (uint32_t)t->debugged.call;
    slot->stop.child = child;
    if (child && count_hit(t, WORKER_FORK, 0)) return WORKER_FORK;
    return is_caught(t->debugged.call) && count_hit(t, WORKER_RETURN, 0) ? WORKER_RETURN : WORKER_NONE;
}

static bool has_catches(void) {
    uint64_t any = run.catches.forks;
    for (size_t i = 0; i < WORKER_CALLS / 64; i++) any |= run.catches.calls[i];
    return any;
}

void debug_break(struct tblock *tb) {
    struct thread *t = tb->thread;
    see(t);
    if (!watch_has_break(tb->pc)) {
        engine_drop_block(tb->pc);
        return;
    }
    if (hits_break(t)) {
        stop(t, WORKER_BREAK);
        replay_set_budget(t);
    }
    t->debugged.once = true;
    tb->debug = tb->debug_step = true;
}

/* ---- accesses to what is watched ---- */

static size_t access_size(gaddr pc) {
    struct insn in;
    if (!decode_next(&in, pc)) return 1;
    size_t size = MAX(MAX(in.load_size, in.store_size), MAX(in.push_size, in.pop_size));
    return size && size != MEM_SIZE_UNKNOWN ? size : 1;
}

static bool is_repeated(gaddr pc) {
    struct insn in;
    return decode_next(&in, pc) && in.rep;
}

/* The program's instruction has touched a watched page. True: the run stops in front of it. */
static bool begin_access(struct thread *t, gaddr addr, bool write, bool counts) {
    bool is_hit;
    gaddr hit = 0;
    size_t size = counts ? access_size(t->tb->pc) : 1;
    bool is_coming = shared_is_closed(addr);
    if (!(is_coming ? watch_touches : watch_open)(addr, size, write, &is_hit, &hit)) return false;
    access.is_coming |= is_coming;
    if (access.is_under_way) {
        access.is_access |= is_hit && counts;
        return false;
    }
    access.is_under_way = true;
    access.is_access = is_hit && counts;
    access.addr = hit;
    access.number = counts ? ++hits : 0;
    access.pc = t->tb->pc;
    access.ticks = ticks_total(t->tb);
    access.is_repeated = counts && is_repeated(access.pc);
    access.rsi = t->tb->gpr[RSI];
    access.rdi = t->tb->gpr[RDI];
    return access.number && access.number == run.stop_at;
}

/* Whether a register that went from one address to another, by `size`, has led over something that is watched. */
static bool has_led_over(uint64_t from, uint64_t to, size_t size, bool write, gaddr *hit) {
    gaddr lo = from <= to ? from : to + size, hi = from <= to ? to : from + size;
    bool is_hit = false;
    for (gaddr next; lo < hi && !is_hit; lo = next) {
        next = MIN(PAGE_DOWN(lo) + PAGE_SIZE, hi);
        watch_touches(lo, next - lo, write, &is_hit, hit);
    }
    return is_hit;
}

/* Of a string instruction that is done: the page that it came to first says little. */
static void judge_repeated(const struct thread *t) {
    const struct tblock *tb = t->tb;
    struct insn in;
    if (!access.is_repeated || !decode_next(&in, access.pc) || tb->pc != access.pc + in.len) return;
    size_t load = in.load_size, store = in.store_size;
    access.is_access |= store && has_led_over(access.rdi, tb->gpr[RDI], store, true, &access.addr);
    access.is_access |= load && has_led_over(access.rsi, tb->gpr[RSI], load, false, &access.addr);
    access.is_access |= load && !store && has_led_over(access.rdi, tb->gpr[RDI], load, false, &access.addr);
}

/* An access is over, or events have been taken. True: the run stops. */
static bool end_access(struct thread *t, bool by_op) {
    gaddr addr = 0;
    bool changed = watch_close(&addr);
    if (access.is_under_way) judge_repeated(t);
    bool is_hit = changed || (access.is_under_way && access.is_access);
    uint64_t number = access.is_under_way ? access.number : by_op ? ++hits : 0;
    if (!changed) addr = access.addr;
    access.is_under_way = access.is_coming = false;
    if (!is_hit || !number || run.stop_at) return false;
    slot->stop.addr = addr;
    if (!run.collect) return true;
    remember_hit((struct worker_hit){.number = number,
                                     .reason = WORKER_WATCH,
                                     .by_op = by_op,
                                     .addr = addr,
                                     .place = place_of(t),
                                     .pc = access.pc,
                                     .from_ticks = access.ticks,
                                     .op_event = t->debugged.op_event,
                                     .op_ticks = t->debugged.op_ticks});
    return false;
}

/* The run stops before the access to addr that has begun. A run that goes on from there meets it anew, under the same number. */
static void stop_in_front(struct thread *t, gaddr addr) {
    access.is_under_way = access.is_coming = false;
    watch_take_back();
    hits--;
    see(t);
    stop_soon = true;
    soon_why = WORKER_WATCH;
    slot->stop.addr = addr;
}

bool debug_fault(struct thread *t, const struct siginfo_raw *info, struct ucontext_raw *uc) {
    if (!watch_is_any() || uc->mc.trapno != TRAP_PAGE_FAULT) return false;
    gaddr addr = uc->mc.cr2, unused;
    bool write = uc->mc.err & PF_WRITE, ignored;
    if (!cache_contains(uc->mc.rip)) return watch_open(addr, 1, write, &ignored, &unused);
    struct fault_regs regs;
    signals_regs(&regs, uc);
    int64_t ticks = ticks_left(t->tb);
    bool was_under_way = access.is_under_way;
    enum fault_where where = fault_to_guest(t->tb, &regs);
    bool guests = where == FAULT_AT_BOUNDARY || where == FAULT_INSIDE; /* and not a word of ours on its stack */
    bool stops = begin_access(t, addr, write, guests);
    if (!access.is_under_way) { /* not our doing: as if nothing had been looked at */
        ticks_deal(t->tb, ticks, 0);
        return false;
    }
    if (stops) {
        t->tb->rflags &= ~(1ull << 16); /* RF */
        t->stepping = STEP_NOT;
        t->tb->debug = true;
        access.stops_inside = is_repeated(t->tb->pc);
        stop_in_front(t, addr);
        signals_leave_to_enter(uc);
        return true;
    }
    if (!was_under_way && !t->tb->debug_step) see(t);
    ticks_deal(t->tb, ticks, 0);
    t->tb->debug = true;
    if (access.is_coming) {
        t->debugged.once = true; /* to come by again behind it */
        return false;
    }
    signals_step_on(t, uc);
    return true;
}

/* Where the instruction at hand stores, as far as it can be told. False: anywhere. */
static bool store_range(const struct tblock *tb, gaddr *addr, uint64_t *n) {
    struct insn in;
    size_t size;
    if (!decode_next(&in, tb->pc)) return false;
    *addr = tb->s1;
    switch (store_kind(&in, &size)) {
    case STORE_OPERAND:
    case STORE_PUSH:
    case STORE_STRING: *n = size; return true;
    case STORE_FS:
        *addr += schedule_fs_base();
        *n = size;
        return true;
    case STORE_REPEATED:
        if (tb->gpr[RCX] > UINT64_MAX / 2 / size) return false;
        *n = tb->gpr[RCX] * size;
        *addr = tb->gpr[RDI];
        if (tb->rflags & DIRECTION_FLAG) *addr -= *n - size;
        return true;
    default: return false;
    }
}

bool debug_store(struct tblock *tb) {
    struct thread *t = tb->thread;
    gaddr addr = 0, hit = 0;
    uint64_t n;
    bool is_hit = false, known = store_range(tb, &addr, &n);
    if (known ? !watch_store(addr, n, &is_hit, &hit) : !watch_store_anywhere()) return true;
    if (access.is_under_way) {
        access.is_access |= is_hit;
        return true;
    }
    access.is_under_way = true;
    access.is_access = is_hit;
    access.is_repeated = false;
    access.addr = hit;
    access.number = ++hits;
    access.pc = tb->pc;
    access.ticks = ticks_total(tb);
    tb->debug = true;
    if (!tb->debug_step) see(t);
    if (access.number == run.stop_at) {
        stop_in_front(t, addr);
        return false;
    }
    tb->debug_step = true; /* up to the end of the instruction, where what is watched is compared */
    return true;
}

void debug_mapped(void) {
    if (debug_is_on) watch_remap();
}

/* ---- running ---- */

static bool wants_step(const struct thread *t) {
    if (t->debugged.once || run.single) return true;
    if (run.step && t->number == run.thread) return true;
    return run.aim && stream_taken() == run.event && ticks_total(t->tb) == run.ticks;
}

static bool is_match(const struct thread *t) {
    if (!run.match || t->tb->pc != run.match_pc || t->tb->gpr[RSP] != run.match_gpr[RSP]) return false;
    return run.match == MATCH_PLACE || memcmp(t->tb->gpr, run.match_gpr, sizeof run.match_gpr) == 0;
}

static bool is_past_aim(const struct worker_place *p) {
    if (!run.aim) return false;
    uint64_t steps = p->is_exact ? run.steps : UINT64_MAX;
    return compare(p, run.event, run.ticks, steps) >= 0;
}

/* How the R-thread goes on. */
static void direct(struct thread *t) {
    struct worker_place p = {stream_taken(), ticks_total(t->tb), 0, 0, 0};
    bool past = run.aim && compare(&p, run.event, run.ticks, 0) > 0;
    t->tb->debug_step = wants_step(t);
    bool returns = base.is_fresh && t->debugged.returned == base.event && has_catches();
    t->tb->debug = t->tb->debug_step || past || stop_soon || returns || watch_is_open();
    if (!t->tb->debug) base.is_known = base.is_fresh = false;
}

static bool is_interrupted(void) { return !run.steady && __atomic_load_n(&control->interrupt, __ATOMIC_ACQUIRE); }

static void look_around(void) {
    if (is_interrupted()) {
        stop_soon = true;
        soon_why = WORKER_INTERRUPTED;
    } else if (run.pause_us && now_us() - began_us >= run.pause_us) {
        stop_soon = true;
        soon_why = WORKER_PAUSED;
    }
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
    if (run.aim && taken == run.event && now < run.ticks) most = MIN(most, run.ticks - now - 1);
    return MIN(n, most);
}

void debug_tick(struct thread *t) {
    if (!is_begun) return;
    count_work(t);
    see(t);
    look_around();
    bool is_last = run.aim && stream_taken() == run.event && ticks_total(t->tb) + 1 == run.ticks;
    if (is_last || stop_soon) t->debugged.once = true;
}

void debug_thread_ended(struct thread *t) {
    if (!is_begun || !run.step || run.thread != t->number) return;
    stop_soon = true; /* whoever goes on */
    soon_why = WORKER_STEPPED;
}

static void note_name(struct thread *t) {
    if (t->tb->gpr[RAX] == __NR_prctl && t->tb->gpr[RDI] == PR_SET_NAME) thread_take_name(t, t->tb->gpr[RSI]);
}

void debug_op(struct thread *t, bool is_call) {
    if (is_call) note_name(t);
    if (!is_begun) return;
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

static bool is_wanted(int signo) { return signo > 0 && signo <= NSIG_MAX && run.signals >> (signo - 1) & 1; }

bool debug_signal(struct thread *t, const struct siginfo_raw *info, enum signal_place where) {
    if (!is_begun) return true;
    gaddr pc = t->tb->pc;
    slot->stop.has_siginfo = 1;
    slot->stop.is_fault = where == SIGNAL_OF_FAULT;
    slot->stop.signo = info->signo;
    memcpy(slot->stop.siginfo, info, sizeof slot->stop.siginfo);
    struct worker_place p = place_of(t);
    if (where == SIGNAL_BEHIND) {
        before = here;
        here = p;
    }
    if (is_past_aim(&p) || is_match(t)) stop(t, WORKER_ARRIVED);
    if (is_wanted(info->signo) && count_hit(t, WORKER_SIGNAL, 0)) stop(t, WORKER_SIGNAL);
    return !debug_is_diverted || t->tb->pc == pc;
}

/* Why to stop at this instruction boundary, which is a new one or not. */
static enum worker_reason why_stop(struct thread *t, bool moved) {
    bool arrived = is_past_aim(&here) || is_match(t), waits = access.is_coming && !moved;
    if (waits && !arrived) return WORKER_NONE; /* the page has come, the instruction that needs it comes now */
    if (watch_is_open() || access.is_under_way) {
        bool by_op = !access.is_under_way || waits;
        if (end_access(t, by_op)) return WORKER_WATCH;
    }
    if (arrived) return WORKER_ARRIVED;
    if (run.step && t->number == run.thread && has_moved(t, from_pc, from_rsp, from_ticks)) return WORKER_STEPPED;
    enum worker_reason call = moved && !run.step ? behind_call(t) : WORKER_NONE;
    if (call != WORKER_NONE) return call;
    bool own_step = run.step && t->number == run.thread;
    if (moved && wants_step(t) && !own_step && hits_break(t)) return WORKER_BREAK;
    bool anywhere = soon_why == WORKER_WATCH || soon_why == WORKER_CALL;
    if (stop_soon && (here.is_exact || anywhere)) return soon_why;
    return WORKER_NONE;
}

void debug_enter(struct tblock *tb) {
    static uint32_t entries;
    struct thread *t = tb->thread;
    if (++entries % LOOK_EVERY == 0 && !stop_soon) look_around(); /* budgets that begin anew do not end */
    bool moved = track(t);
    if (moved && run.trace) remember(t);
    enum worker_reason why = why_stop(t, moved);
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
    slot = (struct worker_slot *)(control + 1) + number;
    slot->pid = (uint32_t)SYS(getpid);
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

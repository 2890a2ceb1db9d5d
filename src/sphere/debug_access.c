/* Accesses of the program to what is watched: found by closed pages (debug_fault) or by a filter in front of stores (debug_store),
 * judged when the instruction is done. */
#include "engine/store_filter.h"
#include "inproc/str.h"
#include "sphere/debug.h"
#include "sphere/debug_parts.h"
#include "sphere/debug_state.h"
#include "sphere/debug_watch.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/sigframe.h"
#include "sphere/signals.h"

#define DIRECTION_FLAG (1ull << 10)

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

bool debug_decode(struct insn *in, gaddr pc) {
    uint8_t bytes[INSN_MAX_LEN];
    size_t n = sizeof bytes;
    n = state_read(pc, bytes, n);
    return n && decode_insn(in, bytes, n, pc);
}

static size_t access_size(gaddr pc) {
    struct insn in;
    if (!debug_decode(&in, pc)) return 1;
    size_t size = MAX(MAX(in.load_size, in.store_size), MAX(in.push_size, in.pop_size));
    return size && size != MEM_SIZE_UNKNOWN ? size : 1;
}

static bool is_repeated(gaddr pc) {
    struct insn in;
    return debug_decode(&in, pc) && in.rep;
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
    access.number = counts ? ++debug_hits : 0;
    access.pc = t->tb->pc;
    access.ticks = ticks_total(t->tb);
    access.is_repeated = counts && is_repeated(access.pc);
    access.rsi = t->tb->gpr[RSI];
    access.rdi = t->tb->gpr[RDI];
    return access.number && access.number == debug_run.stop_at;
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
    if (!access.is_repeated || !debug_decode(&in, access.pc) || tb->pc != access.pc + in.len) return;
    size_t load = in.load_size, store = in.store_size;
    access.is_access |= store && has_led_over(access.rdi, tb->gpr[RDI], store, true, &access.addr);
    access.is_access |= load && has_led_over(access.rsi, tb->gpr[RSI], load, false, &access.addr);
    access.is_access |= load && !store && has_led_over(access.rdi, tb->gpr[RDI], load, false, &access.addr);
}

bool access_is_under_way(void) { return access.is_under_way; }
bool access_is_coming(void) { return access.is_coming; }
bool access_stops_inside(void) { return access.stops_inside; }
void access_goes_on(void) { access.stops_inside = false; }

bool access_end(struct thread *t, bool by_op) {
    gaddr addr = 0;
    bool changed = watch_close(&addr);
    if (access.is_under_way) judge_repeated(t);
    bool is_hit = changed || (access.is_under_way && access.is_access);
    uint64_t number = access.is_under_way ? access.number : by_op ? ++debug_hits : 0;
    if (!changed) addr = access.addr;
    access.is_under_way = access.is_coming = false;
    if (!is_hit || !number || debug_run.stop_at) return false;
    debug_slot->stop.addr = addr;
    if (!debug_run.collect) return true;
    debug_remember_hit((struct worker_hit){.number = number,
                                           .reason = WORKER_WATCH,
                                           .by_op = by_op,
                                           .addr = addr,
                                           .place = debug_place(t),
                                           .pc = access.pc,
                                           .from_ticks = access.ticks,
                                           .op_event = t->debugged.op_event,
                                           .op_ticks = t->debugged.op_ticks});
    return false;
}

bool access_is_undone(const struct thread *t) {
    return access.is_under_way && !access.is_coming && !access.is_repeated && t->tb->pc == access.pc &&
           ticks_total(t->tb) == access.ticks;
}

void access_undo(void) {
    access.is_under_way = false;
    if (access.number) debug_hits--;
    watch_undo();
}

/* The run stops before the access to addr that has begun. A run that goes on from there meets it anew, under the same number. */
static void stop_in_front(struct thread *t, gaddr addr) {
    access.is_under_way = access.is_coming = false;
    watch_take_back();
    debug_hits--;
    debug_see(t);
    debug_stop_soon(WORKER_WATCH);
    debug_slot->stop.addr = addr;
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
    if (!was_under_way && !t->tb->debug_step) debug_see(t);
    ticks_deal(t->tb, ticks, 0);
    t->tb->debug = true;
    if (access.is_coming) {
        t->debugged.once = true; /* to come by again behind it */
        return false;
    }
    t->tb->debug_step = true; /* also if it is begun again for its tick */
    signals_step_on(t, uc);
    return true;
}

bool debug_writes(struct tblock *tb, gaddr at, size_t n) {
    struct thread *t = tb->thread;
    bool stops = false;
    if (!watch_is_any()) return true;
    for (gaddr page = PAGE_DOWN(at); page < at + n; page += PAGE_SIZE)
        stops |= begin_access(t, MAX(page, at), true, true);
    if (!access.is_under_way) return true;
    if (!tb->debug_step) debug_see(t);
    tb->debug = true;
    if (stops) stop_in_front(t, at);
    return !stops;
}

/* Where the instruction at hand stores, as far as it can be told. False: anywhere. */
static bool store_range(const struct tblock *tb, gaddr *addr, uint64_t *n) {
    struct insn in;
    size_t size;
    if (!debug_decode(&in, tb->pc)) return false;
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
    access.number = ++debug_hits;
    access.pc = tb->pc;
    access.ticks = ticks_total(tb);
    tb->debug = true;
    if (!tb->debug_step) debug_see(t);
    if (access.number == debug_run.stop_at) {
        stop_in_front(t, addr);
        return false;
    }
    tb->debug_step = true; /* up to the end of the instruction, where what is watched is compared */
    return true;
}

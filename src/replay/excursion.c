/* Looking for something elsewhere in the recording while the present stays what it is: how a value came about. */
#include <string.h>

#include "replay/timeline_parts.h"

bool excursion_leave(struct target *target) {
    struct timeline *t = timeline_of(target);
    if (!trail_settle(t)) return false;
    trail_drop(t);
    struct worker *copy = t->left ? NULL : session_fork(&t->session, t->now);
    if (!copy) return false;
    search_forget(t);
    t->left = t->now;
    t->left_diversion = t->diversion;
    t->now = copy;
    t->diversion = NULL;
    return true;
}

void excursion_come_back(struct target *target) {
    struct timeline *t = timeline_of(target);
    if (!t->left) return;
    trail_drop(t);
    session_kill(&t->session, t->now);
    session_kill(&t->session, t->diversion);
    t->now = t->left;
    t->diversion = t->left_diversion;
    t->left = t->left_diversion = NULL;
}

struct stop excursion_find_store(struct target *target, uint64_t addr, size_t len) {
    struct timeline *t = timeline_of(target);
    struct worker_break one = {addr, len, WORKER_BREAK_STORE, 0}, *breaks = t->breaks;
    size_t n = t->n_breaks;
    uint64_t version = t->version, signals = t->signals;
    bool has_catches = t->has_catches;
    struct worker_catches catches = t->catches;
    t->signals = 0;
    t->has_catches = false;
    t->catches = (struct worker_catches){0};
    t->breaks = &one;
    t->n_breaks = 1;
    t->version = timeline_hash_breaks(t);
    if (!trail_settle(t)) return timeline_failure("the present place cannot be found again");
    trail_drop(t);
    struct stop s = timeline_reverse_continue(t);
    t->breaks = breaks;
    t->n_breaks = n;
    t->version = version;
    t->signals = signals;
    t->has_catches = has_catches;
    t->catches = catches;
    return s;
}

/* Out of the ring that the worker has filled, without what is not before `to`. */
static size_t take_past(const struct worker_past *ring, uint64_t traced, struct position to, struct past *out,
                        size_t cap) {
    uint64_t first = traced > WORKER_PAST ? traced - WORKER_PAST : 0;
    size_t n = 0;
    if (traced - first > cap) first = traced - cap;
    for (uint64_t i = first; i < traced; i++) {
        const struct worker_past *p = &ring[i % WORKER_PAST];
        struct position at = {to.event, p->ticks, p->steps};
        if (position_compare(at, to) >= 0) break;
        out[n] = (struct past){.at = at, .pc = p->pc, .rflags = p->rflags};
        memcpy(out[n++].gpr, p->gpr, sizeof p->gpr);
    }
    return n;
}

size_t excursion_history(struct target *target, uint64_t ticks, uint64_t written, struct past *out, size_t cap,
                         struct position *from, bool *at_event) {
    struct timeline *t = timeline_of(target);
    *at_event = false;
    if (!trail_settle(t) || !timeline_resolve(t)) return 0;
    const struct worker_stop now = t->now->stop;
    struct position to = position_of(&now.place);
    *from = (struct position){to.event, now.base_ticks, 0};
    if (to.ticks - now.base_ticks > ticks) from->ticks = to.ticks - ticks;
    if (position_compare(*from, to) >= 0) {
        *at_event = true;
        return 0;
    }
    struct worker *w = timeline_reach(t, *from);
    if (!w) return 0;
    struct worker_run run = {.aim = AIM_PLACE, .event = to.event, .ticks = to.ticks, .steps = to.steps};
    run.single = 1;
    run.trace = TRACE_REGISTERS;
    run.trace_writes = written;
    size_t n = 0;
    if (session_run(&t->session, w, &run)) {
        uint64_t traced = w->stop.traced;
        n = take_past((const struct worker_past *)session_slot(&t->session, w)->data, traced, to, out, cap);
        *at_event = from->ticks == now.base_ticks && traced <= WORKER_PAST && traced <= cap;
    }
    session_kill(&t->session, w);
    return n;
}

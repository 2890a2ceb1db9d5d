/* The trail: the instructions just before the present, of the R-thread that runs, as far back as the last event at most. Whoever goes
 * back step by step goes along it: registers are known, and memory is that of the present worker, which stands further on, without
 * what the instructions in between have stored. A worker is brought to where the debugger is when somebody wants more than that. */
#include <stdlib.h>
#include <string.h>

#include "replay/timeline_parts.h"

#define TICKS_FIRST 16
#define TICKS_MOST 4096
#define LAID_MOST 4    /* in a search */
#define STEPS_FEW 8    /* a debugger that takes more, one after the other, will go on with that */
#define STEPS_AGAIN 40 /* where it could not be laid */

struct trail {
    struct worker_past list[WORKER_PAST]; /* oldest first */
    size_t n, base, at; /* where the worker stands, and where the debugger is: n is behind the last one */
    uint64_t event, base_ticks;
    uint64_t ticks;   /* how far back at once */
    bool was_stepped; /* the last move was a step back, too */
    int steps_on;     /* in a row, in which nobody wanted more than the trail has */
};

bool trail_open(struct timeline *t) {
    t->trail = calloc(1, sizeof *t->trail);
    if (t->trail) t->trail->ticks = TICKS_FIRST;
    return t->trail != NULL;
}

void trail_close(struct timeline *t) { free(t->trail); }

bool trail_is_ahead(const struct timeline *t) { return t->trail->at < t->trail->base; }

void trail_drop(struct timeline *t) {
    t->trail->n = t->trail->base = t->trail->at = 0;
    t->trail->was_stepped = false;
    t->trail->steps_on = 0;
}

void trail_moved(struct timeline *t, bool backward, bool step) {
    int steps_on = step && !backward ? t->trail->steps_on : 0;
    trail_drop(t);
    t->trail->was_stepped = step && backward;
    t->trail->steps_on = steps_on;
}

static struct position position_at(const struct trail *r, size_t i) {
    return (struct position){r->event, r->list[i].ticks, r->list[i].steps};
}

struct position trail_position(const struct timeline *t) {
    const struct trail *r = t->trail;
    return trail_is_ahead(t) ? position_at(r, r->at) : position_of(&t->now->stop.place);
}

void trail_is_not_enough(struct timeline *t) { t->trail->steps_on = 0; }

bool trail_settle(struct timeline *t) {
    struct trail *r = t->trail;
    if (!trail_is_ahead(t)) return true;
    struct worker *w = timeline_reach_near(t, position_at(r, r->at));
    if (!w) {
        trail_drop(t);
        return false;
    }
    timeline_become(t, w);
    r->base = r->at;
    return true;
}

/* ---- making one ---- */

/* Whether one can be made that ends at p, where the worker or the debugger stands. */
static bool may_lay(const struct timeline *t, struct position p, uint64_t base_ticks) {
    const struct worker_stop *s = &t->now->stop;
    if (t->diversion || p.ticks < base_ticks || (p.ticks == base_ticks && !p.steps)) return false;
    if (trail_is_ahead(t)) return true;
    return s->place.is_exact && !s->is_inside && !s->is_anothers && !s->is_again && s->reason != WORKER_SIGNAL &&
           !worker_is_over(t->now);
}

/* Out of the ring, without what is not before `to`. is_again: the first one was tried before, in front of the last events, and that
 * is where a step back leads. */
static size_t take(struct trail *r, const struct worker_past *ring, uint64_t traced, bool is_again,
                   struct position to) {
    uint64_t first = traced > WORKER_PAST ? traced - WORKER_PAST : is_again;
    size_t n = 0;
    for (uint64_t i = first; i < traced; i++) {
        r->list[n] = ring[i % WORKER_PAST];
        struct worker_past *p = &r->list[n];
        if (p->store_len > sizeof p->old) p->store_len = WORKER_STORE_UNKNOWN;
        if (position_compare(position_at(r, n), to) >= 0) break;
        n++;
    }
    return n;
}

/* The worker that has found it out stands at its end, and is the present one from then on. */
static bool lay(struct timeline *t, struct position to, uint64_t event, uint64_t base_ticks) {
    struct trail *r = t->trail;
    struct position from = {to.event, to.ticks - base_ticks > r->ticks ? to.ticks - r->ticks : base_ticks, 0};
    struct worker *w = timeline_reach_near(t, from);
    if (!w) return false;
    struct worker_run run = timeline_run_to(to);
    run.single = run.steady = 1;
    run.trace = TRACE_STORES;
    checkpoint_add(t, w);
    bool is_again = w->stop.is_again;
    bool good = session_run(&t->session, w, &run) && w->stop.place.is_exact && w->stop.reason == WORKER_ARRIVED &&
                position_compare(position_of(&w->stop.place), to) == 0;
    if (!good) {
        session_kill(&t->session, w);
        return false;
    }
    uint64_t traced = w->stop.traced;
    r->event = event;
    r->base_ticks = base_ticks;
    const struct worker_past *ring = (const struct worker_past *)session_slot(&t->session, w)->data;
    r->n = r->base = r->at = take(r, ring, traced, is_again, to);
    if (traced < WORKER_PAST / 2 && r->ticks < TICKS_MOST) r->ticks *= 2;
    if (traced > 2 * WORKER_PAST && r->ticks > 1) r->ticks /= 2;
    timeline_become(t, w);
    return r->n > 0;
}

static bool has_way_back(struct timeline *t) {
    struct trail *r = t->trail;
    if (r->at > 0) return true;
    struct position p = trail_position(t);
    uint64_t base_ticks = trail_is_ahead(t) ? r->base_ticks : t->now->stop.base_ticks;
    return may_lay(t, p, base_ticks) && lay(t, p, p.event, base_ticks);
}

/* ---- what is there ---- */

/* Takes a store back, as far as it is in the n bytes that were at addr. */
static void undo(const struct worker_past *p, uint64_t addr, uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < p->store_len; i++)
        if (p->store_at + i - addr < n) bytes[p->store_at + i - addr] = p->old[i];
}

size_t trail_read(struct timeline *t, uint64_t addr, void *to, size_t n) {
    const struct trail *r = t->trail;
    size_t done = memory_read(t, t->now, addr, to, n);
    for (size_t i = r->base; i-- > r->at;) undo(&r->list[i], addr, to, done);
    return done;
}

const struct worker_past *trail_here(const struct timeline *t) { return &t->trail->list[t->trail->at]; }

/* ---- moving ---- */

static struct stop stop_here(const struct timeline *t, enum stop_reason reason) {
    return (struct stop){.reason = reason, .thread = t->now->stop.tid};
}

static bool overlaps(const struct worker_break *b, const struct worker_past *p) {
    return p->store_at < b->addr + b->len && b->addr < p->store_at + p->store_len;
}

/* The step over which we have just gone back is one that a watchpoint stops for. */
static bool is_watched(struct timeline *t, const struct worker_past *p, uint64_t *addr) {
    uint8_t now[sizeof p->old];
    if (!p->store_len) return false;
    t->trail->at++;
    bool known = trail_read(t, p->store_at, now, p->store_len) == p->store_len;
    t->trail->at--;
    for (size_t i = 0; i < t->n_breaks; i++) {
        const struct worker_break *b = &t->breaks[i];
        if (b->kind == WORKER_BREAK_EXEC || b->kind == WORKER_BREAK_READ || !overlaps(b, p)) continue;
        for (size_t k = 0; k < p->store_len; k++) {
            bool inside = p->store_at + k - b->addr < b->len, changed = !known || now[k] != p->old[k];
            *addr = p->store_at + k;
            if (inside && (changed || b->kind != WORKER_BREAK_WRITE)) return true;
        }
    }
    return false;
}

bool trail_step(struct timeline *t, struct stop *out) {
    struct trail *r = t->trail;
    bool again = r->was_stepped;
    r->was_stepped = true;
    if (t->diversion || (!again && !r->at) || !has_way_back(t)) return false;
    const struct worker_past *p = &r->list[r->at - 1];
    if (p->store_len == WORKER_STORE_UNKNOWN) return false;
    r->at--;
    *out = stop_here(t, STOP_STEP);
    if (is_watched(t, p, &out->addr)) out->reason = STOP_WATCHPOINT;
    return true;
}

/* Whether all that is looked for is seen on the trail. */
static bool may_search(const struct timeline *t) {
    if (t->diversion || t->conditions_len || !t->trail->at) return false;
    for (size_t i = 0; i < t->n_breaks; i++) {
        const struct worker_break *b = &t->breaks[i];
        if (b->kind == WORKER_BREAK_READ || b->kind == WORKER_BREAK_ACCESS) return false;
        for (size_t k = 0; b->kind != WORKER_BREAK_EXEC && k < t->trail->at; k++)
            if (overlaps(b, &t->trail->list[k])) return false;
    }
    return true;
}

static bool has_break(const struct timeline *t, uint64_t pc) {
    for (size_t i = 0; i < t->n_breaks; i++)
        if (t->breaks[i].kind == WORKER_BREAK_EXEC && t->breaks[i].addr == pc) return true;
    return false;
}

/* Back to place i. */
static bool go_to(struct timeline *t, size_t i) {
    struct trail *r = t->trail;
    bool is_known = true;
    for (size_t k = i; k < r->at; k++) is_known &= r->list[k].store_len != WORKER_STORE_UNKNOWN;
    r->at = i;
    return is_known || trail_settle(t);
}

/* A debugger that steps over a call from behind it has it back to its begin: that is near, as a rule. What is not found may well be
 * looked for from the begin of the trail on. */
bool trail_search(struct timeline *t, struct stop *out) {
    struct trail *r = t->trail;
    for (int laid = 0; may_search(t); laid++) {
        size_t i = r->at;
        while (i > 0 && !has_break(t, r->list[i - 1].pc)) i--;
        bool good = go_to(t, i ? i - 1 : 0);
        *out = good ? stop_here(t, STOP_BREAKPOINT) : timeline_failure("the replay broke on its way back");
        if (i || !good) return true;
        if (laid == LAID_MOST || !has_way_back(t)) return false;
    }
    return false;
}

/* ---- steps forwards ---- */

static bool may_lay_ahead(const struct timeline *t) {
    const struct worker_stop *s = &t->now->stop;
    return s->place.is_exact && !s->is_inside && !s->is_anothers && !s->is_again && s->reason != WORKER_SIGNAL &&
           !worker_is_over(t->now);
}

/* The worker goes ahead, and has the trail behind it. Who has to go back there finds a checkpoint. */
static bool lay_ahead(struct timeline *t) {
    struct trail *r = t->trail;
    if (!may_lay_ahead(t)) return false;
    struct position from = position_of(&t->now->stop.place);
    uint64_t base_ticks = t->now->stop.base_ticks;
    struct worker_run run = {.single = 1, .steady = 1, .trace = TRACE_STORES, .trace_all = 1};
    trail_drop(t);
    r->steps_on = STEPS_FEW;
    checkpoint_add(t, t->now);
    breakpoints_arm(t, t->now, false);
    bool good = session_run(&t->session, t->now, &run) && t->now->stop.reason == WORKER_ARRIVED &&
                t->now->stop.place.is_exact && t->now->stop.place.event == from.event;
    uint64_t traced = t->now->stop.traced;
    if (good && traced <= WORKER_PAST) {
        r->event = from.event;
        r->base_ticks = base_ticks;
        const struct worker_past *ring = (const struct worker_past *)session_slot(&t->session, t->now)->data;
        r->n = r->base = take(r, ring, traced, false, position_of(&t->now->stop.place));
    }
    if (r->n) return true;
    if (good) return false; /* it has not moved */
    struct worker *w = timeline_reach(t, from);
    if (w) timeline_become(t, w);
    r->steps_on = STEPS_FEW - STEPS_AGAIN;
    return false;
}

static bool is_read_watched(const struct timeline *t) {
    for (size_t i = 0; i < t->n_breaks; i++)
        if (t->breaks[i].kind == WORKER_BREAK_READ || t->breaks[i].kind == WORKER_BREAK_ACCESS) return true;
    return false;
}

bool trail_step_on(struct timeline *t, struct stop *out) {
    struct trail *r = t->trail;
    r->steps_on++;
    r->was_stepped = false;
    if (t->diversion || is_read_watched(t)) return false;
    if (!trail_is_ahead(t) && (r->steps_on <= STEPS_FEW || !lay_ahead(t))) return false;
    const struct worker_past *p = &r->list[r->at];
    if (p->store_len == WORKER_STORE_UNKNOWN) return false;
    *out = stop_here(t, STOP_STEP);
    if (is_watched(t, p, &out->addr)) out->reason = STOP_WATCHPOINT;
    r->at++;
    return true;
}

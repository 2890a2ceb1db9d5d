/* Reverse continue: the last hit of a breakpoint, watchpoint, catchpoint or signal before the present.
 *
 * Stretches between checkpoints are run forward once each, the last one first, leaving checkpoints on the way. Where the last hit
 * is known the way to it is short, and more checkpoints are left shortly before it: whoever goes back once goes back again. */
#include "replay/timeline_parts.h"

/* ---- signals ---- */

static bool recording_has_signals(const struct recording *r, uint64_t number) {
    const struct stream_ref *s = recording_stream(r, number);
    struct event_reader reader;
    const struct event *e;
    bool found = false;
    if (!s || !event_reader_open(&reader, r, s)) return false;
    while (!found && event_reader_next(&reader, &e) == READ_GOT) found = e->kind == EV_SIGNAL || e->kind == EV_FAULT;
    event_reader_close(&reader);
    return found;
}

/* Whether there is a signal to stop for anywhere: otherwise nothing needs to be searched for one. */
static bool may_signal(struct timeline *t) {
    if (t->signals && t->has_signals == NOT_LOOKED)
        t->has_signals = recording_has_signals(t->options.recording, t->stream) ? HAS_SIGNALS : NO_SIGNALS;
    return t->signals && t->has_signals == HAS_SIGNALS;
}

/* ---- hits that are known ---- */

void search_forget(struct timeline *t) {
    for (size_t i = 0; i < t->n_ahead; i++) session_kill(&t->session, t->ahead[i]);
    t->n_ahead = t->wants_ahead = 0;
}

/* The workers that stand at the hits before the present one are of use as long as the same is searched for. */
static bool is_known(const struct timeline *t) { return t->n_ahead && t->ahead_version == t->version; }

/* ---- the last hits ---- */

enum found { FOUND_NOTHING, FOUND_HIT, FOUND_TROUBLE };

struct hits {
    struct worker_hit list[WORKER_HITS]; /* in order */
    size_t n;
};

static void take_hits(struct timeline *t, const struct worker *w, struct hits *out) {
    const struct worker_hit *ring = (const struct worker_hit *)session_slot(&t->session, w)->data;
    uint64_t all = w->stop.collected, first = all > WORKER_HITS ? all - WORKER_HITS : 0;
    if (!all) return;
    out->n = 0;
    for (uint64_t i = first; i < all; i++) out->list[out->n++] = ring[i % WORKER_HITS];
}

/* The last hits from the place of w on, up to `limit`: those behind the last checkpoint that is left. */
static enum found collect(struct timeline *t, struct worker *w, struct position limit, bool leaves_checkpoints,
                          struct hits *hits) {
    struct worker_run run = timeline_run_to(limit);
    run.fresh = run.collect = 1;
    run.steady = !leaves_checkpoints;
    run.signals = t->signals;
    run.catches = t->catches;
    hits->n = 0;
    breakpoints_arm(t, w, true);
    for (;;) {
        run.pause_us = leaves_checkpoints ? t->interval_us : 0;
        if (!session_run(&t->session, w, &run)) return FOUND_TROUBLE;
        take_hits(t, w, hits);
        if (w->stop.reason != WORKER_PAUSED) break;
        checkpoint_add(t, w);
    }
    if (w->stop.reason == WORKER_FAILED || w->stop.reason == WORKER_INTERRUPTED) return FOUND_TROUBLE;
    return hits->n ? FOUND_HIT : FOUND_NOTHING;
}

static bool is_at_hit(const struct worker *w, const struct worker_hit *hit) {
    return w->stop.reason == hit->reason && w->stop.pc == hit->pc && w->stop.place.ticks == hit->from_ticks;
}

static bool run_to_hit(struct timeline *t, struct worker *w, const struct worker_hit *hit, bool goes_on) {
    struct worker_run run = {
        .fresh = !goes_on, .goes_on = goes_on, .steady = 1, .stop_at = hit->number, .signals = t->signals};
    run.catches = t->catches;
    if (!session_run(&t->session, w, &run) || !is_at_hit(w, hit)) return false;
    w->stop.addr = hit->addr;
    return true;
}

/* Runs w to the last of the hits, which are counted from where it stands, and leaves copies at those before it. */
static bool run_through(struct timeline *t, struct worker *w, const struct worker_hit *list, size_t n) {
    breakpoints_arm(t, w, true);
    for (size_t i = 0; i < n; i++) {
        if (!run_to_hit(t, w, &list[i], i > 0)) return false;
        struct worker *copy = i + 1 < n ? session_fork(&t->session, w) : NULL;
        if (copy) t->ahead[t->n_ahead++] = copy;
    }
    t->ahead_version = t->version;
    return true;
}

/* Which of the last hits are near enough to the last one to stop at them on the way: more, the more often one was asked for. */
static size_t near_enough(const struct timeline *t, const struct hits *hits) {
    size_t i = hits->n - 1;
    const struct worker_place *last = &hits->list[i].place;
    for (; i > 0 && hits->n - i < t->wants_ahead; i--) {
        const struct worker_hit *h = &hits->list[i - 1];
        bool far = h->place.event != last->event ? last->event - h->place.event > near_events[0]
                                                 : last->ticks - h->place.ticks > near_ticks[0];
        if (far || h->by_op) break;
    }
    return i;
}

/* At a hit. A watchpoint that stops a repeated instruction when it comes to the page has part of it done: back in front of it. */
static struct stop stop_there(struct timeline *t) {
    if (t->now->stop.is_inside && !timeline_resolve(t))
        return timeline_failure("the instruction that was found cannot be found again");
    return timeline_stop_of(t->now);
}

/* From checkpoint i on; false: the hits are not the same from there. */
static bool arrive(struct timeline *t, size_t i, const struct hits *hits, size_t first) {
    for (; first < hits->n; first = hits->n - 1) {
        struct worker *w = session_fork(&t->session, t->checkpoints[i]);
        if (w && run_through(t, w, &hits->list[first], hits->n - first)) {
            timeline_become(t, w);
            return true;
        }
        session_kill(&t->session, w);
        search_forget(t);
        if (first == hits->n - 1) break;
    }
    return false;
}

/* Counts hits from shortly before the first of those that were found and are wanted, or from as far away as is needed to see it. */
static struct stop stop_at_hit(struct timeline *t, struct hits *hits, struct position limit) {
    const struct worker_hit *last = &hits->list[hits->n - 1];
    if (last->by_op) {
        struct stop s = timeline_before_op(t, last->op_event, last->op_ticks);
        s.reason = s.reason == STOP_STEP ? STOP_WATCHPOINT : s.reason;
        s.addr = last->addr;
        return s;
    }
    t->wants_ahead = t->wants_ahead ? 2 * t->wants_ahead : 1;
    if (t->wants_ahead > AHEAD_MAX) t->wants_ahead = AHEAD_MAX;
    const struct worker_hit *first = &hits->list[near_enough(t, hits)];
    struct position near = {first->place.event, first->from_ticks, 0};
    struct position behind = {last->place.event, last->place.ticks + 1, 0};
    if (position_compare(limit, behind) < 0) behind = limit;
    struct worker *w = timeline_reach_near(t, near);
    if (w) checkpoint_add(t, w);
    session_kill(&t->session, w);
    for (size_t i = checkpoint_before(t, near);; i--) {
        w = session_fork(&t->session, t->checkpoints[i]);
        enum found found = w ? collect(t, w, behind, false, hits) : FOUND_TROUBLE;
        session_kill(&t->session, w);
        if (found == FOUND_HIT && arrive(t, i, hits, near_enough(t, hits))) return stop_there(t);
        if (found == FOUND_TROUBLE || !i) return timeline_failure("the replay broke on its way back");
    }
}

/* Looks for the last hit in [checkpoint i, limit). */
static enum found search(struct timeline *t, size_t i, struct position limit, struct stop *out) {
    struct hits hits;
    struct worker *w = session_fork(&t->session, t->checkpoints[i]);
    if (!w) {
        *out = timeline_failure("cannot copy the process");
        return FOUND_TROUBLE;
    }
    enum found found = collect(t, w, limit, true, &hits);
    struct worker_stop s = w->stop;
    session_kill(&t->session, w);
    if (found == FOUND_HIT) *out = stop_at_hit(t, &hits, limit);
    if (found == FOUND_TROUBLE && s.reason == WORKER_INTERRUPTED)
        *out = (struct stop){.reason = STOP_INTERRUPTED, .thread = t->now->stop.tid};
    else if (found == FOUND_TROUBLE)
        *out = timeline_failure(s.text);
    return found;
}

/* ---- the beginning ---- */

/* The instruction whose fault is reported here has a breakpoint: forwards that was hit first, at the same position. */
static bool is_break_before_fault(const struct timeline *t) {
    const struct worker_stop *s = &t->now->stop;
    if (s->reason != WORKER_SIGNAL || !s->is_fault) return false;
    for (size_t i = 0; i < t->n_breaks; i++)
        if (t->breaks[i].kind == WORKER_BREAK_EXEC && t->breaks[i].addr == s->pc) return true;
    return false;
}

/* To the same position, but in front of the instruction. */
static struct stop arrive_at_fault(struct timeline *t, struct position at) {
    struct worker *w = session_fork(&t->session, t->checkpoints[checkpoint_before(t, at)]);
    if (!w) return timeline_failure("cannot copy the process");
    breakpoints_arm(t, w, false);
    struct worker_run run = timeline_run_to(at);
    run.steady = 1;
    bool is_there = position_compare(position_of(&w->stop.place), at) == 0;
    if (!is_there && !session_run(&t->session, w, &run)) {
        session_kill(&t->session, w);
        return timeline_failure("the replay broke on its way back");
    }
    timeline_become(t, w);
    return (struct stop){.reason = STOP_BREAKPOINT, .thread = w->stop.tid};
}

/* The checkpoint to search from up to `limit`, which may be one of the recording. False: the beginning is reached. */
static bool begin_before(struct timeline *t, struct position limit, size_t *i) {
    scout_look(t);
    if (!checkpoint_strictly_before(t, limit, i)) return false;
    struct worker *w = checkpoint_restore(t, limit, true, position_of(&t->checkpoints[*i]->stop.place));
    session_kill(&t->session, w);
    return !w || checkpoint_strictly_before(t, limit, i);
}

/* Behind a call that has made a process: forwards one stops for the process first, then for the end of the call. */
static bool is_behind_fork(struct timeline *t) {
    struct worker_stop *s = &t->now->stop;
    if (s->reason != WORKER_RETURN || !t->catches.forks || !s->child) return false;
    s->reason = session_slot(&t->session, t->now)->stop.reason = WORKER_FORK;
    struct worker *next = is_known(t) ? t->ahead[t->n_ahead - 1] : NULL; /* may be at that very stop */
    if (next && next->stop.reason == WORKER_FORK && !position_compare(position_of(&next->stop.place), position_of(&s->place))) {
        session_kill(&t->session, next);
        t->n_ahead--;
    }
    return true;
}

struct stop search_back(struct timeline *t) {
    if (is_behind_fork(t)) return timeline_stop_of(t->now);
    if (is_known(t)) {
        timeline_become(t, t->ahead[--t->n_ahead]);
        return stop_there(t);
    }
    size_t wants = t->ahead_version == t->version ? t->wants_ahead : 0;
    search_forget(t);
    t->wants_ahead = wants;
    if (!timeline_resolve(t)) return timeline_failure("the present place cannot be found again");
    struct position limit = position_of(&t->now->stop.place);
    if (position_compare(limit, t->begin) <= 0) return (struct stop){.reason = STOP_BEGIN, .thread = t->now->stop.tid};
    if (is_break_before_fault(t)) return arrive_at_fault(t, limit);
    struct stop out;
    bool may_stop = t->n_breaks || t->has_catches || may_signal(t);
    struct position rest = limit; /* what is before it was not searched */
    for (size_t i; may_stop && begin_before(t, rest, &i);) {
        rest = position_of(&t->checkpoints[i]->stop.place);
        if (search(t, i, limit, &out) != FOUND_NOTHING) return out;
        /* who was restored behind a call does not know of it: that place is searched from further away, too */
        limit = (struct position){rest.event, rest.ticks, rest.steps + 1};
    }
    return timeline_go_to_begin(t);
}

static bool is_behind(const struct worker_hit *h, struct position p) {
    struct position at = h->by_op ? (struct position){h->op_event, h->op_ticks, UINT64_MAX} : position_of(&h->place);
    return position_compare(at, p) > 0;
}

struct stop search_stepped_over(struct timeline *t, struct position from, struct stop stepped) {
    struct position to = position_of(&t->now->stop.place);
    bool may_stop = t->n_breaks || t->has_catches || may_signal(t);
    if (stepped.reason != STOP_STEP || !may_stop || from.event < to.event + 2) return stepped;
    struct hits hits;
    struct worker *w = session_fork(&t->session, t->now);
    enum found found = w ? collect(t, w, from, false, &hits) : FOUND_TROUBLE;
    session_kill(&t->session, w);
    bool is_hit = found == FOUND_HIT && is_behind(&hits.list[hits.n - 1], to);
    return is_hit ? stop_at_hit(t, &hits, from) : stepped;
}

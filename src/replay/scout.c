/* Scouts: a restore leads to a place, not to the places before it. While its user looks around, a worker runs there. */
#include "replay/timeline_parts.h"

struct errand {
    const struct stored *stored;
    size_t k;
};

static int make_image(void *arg) {
    const struct errand *e = arg;
    return stored_image(e->stored, e->k);
}

/* Where reach() in timeline.c would stop first on its way from `from` to p. */
static struct position way_to(struct position p, struct position from) {
    for (size_t i = 0; i < NEAR_EVENTS; i++) {
        struct position way = {p.event > near_events[i] ? p.event - near_events[i] : 0, 0, 0};
        if (position_compare(way, from) > 0) return way;
    }
    for (size_t i = 0; i < NEAR_TICKS; i++) {
        struct position way = {p.event, p.ticks > near_ticks[i] ? p.ticks - near_ticks[i] : 0, 0};
        if (position_compare(way, from) > 0) return way;
    }
    return from;
}

void scout_send(struct timeline *t) {
    struct position here = position_of(&t->now->stop.place);
    size_t last = stored_before(&t->stored, here), i;
    if (t->scout || last == STORED_NONE || !last || !checkpoint_strictly_before(t, here, &i)) return;
    struct position at = stored_place(&t->stored, last), from = stored_place(&t->stored, last - 1);
    bool is_known = i > 0 && position_compare(position_of(&t->checkpoints[i - 1]->stop.place), from) > 0;
    if (!at.event || is_known) return; /* somebody has run there already */
    struct position way = way_to((struct position){at.event - 1, at.ticks, 0}, from);
    struct worker_run run = {.aim = AIM_PLACE, .event = way.event, .ticks = way.ticks, .steps = way.steps};
    if (!inherited_fetch(t, last - 1)) return;
    struct errand errand = {&t->stored, last - 1};
    t->scout = session_send(&t->session, make_image, &errand, &run);
    t->scout_from = from;
}

void scout_look(struct timeline *t) {
    if (t->scout && session_has_arrived(&t->session, t->scout)) scout_collect(t, t->scout_from);
}

void scout_collect(struct timeline *t, struct position p) {
    struct worker *w = t->scout;
    if (!w || position_compare(t->scout_from, p) > 0) return;
    t->scout = NULL;
    if (session_await(&t->session, w) && !worker_is_over(w)) checkpoint_add(t, w);
    session_kill(&t->session, w);
}

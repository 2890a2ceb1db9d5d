/* Checkpoints of a timeline: copies of workers, kept where they stand. */
#include <string.h>

#include "replay/timeline_parts.h"

static struct position place(const struct worker *w) { return position_of(&w->stop.place); }

size_t checkpoint_before(const struct timeline *t, struct position to) {
    size_t i = t->n_checkpoints - 1;
    while (i > 0 && position_compare(place(t->checkpoints[i]), to) > 0) i--;
    return i;
}

static void drop(struct timeline *t, size_t i) {
    session_kill(&t->session, t->checkpoints[i]);
    t->n_checkpoints--;
    memmove(&t->checkpoints[i], &t->checkpoints[i + 1], (t->n_checkpoints - i) * sizeof *t->checkpoints);
}

/* How much would be missed, measured by the distance from where we are: small numbers go first. */
static double worth(const struct timeline *t, size_t i, uint64_t work) {
    uint64_t lo = t->checkpoints[i - 1]->stop.work, at = t->checkpoints[i]->stop.work;
    uint64_t hi = i + 1 < t->n_checkpoints ? t->checkpoints[i + 1]->stop.work : at + (at - lo);
    uint64_t away = work > at ? work - at : at - work;
    return (double)(hi - lo + 1) / (double)(away + 1000);
}

void checkpoints_thin(struct timeline *t, uint64_t work) {
    while (t->n_checkpoints > CHECKPOINTS_MAX) {
        size_t least = 1;
        for (size_t i = 2; i < t->n_checkpoints; i++)
            if (worth(t, i, work) < worth(t, least, work)) least = i;
        drop(t, least);
    }
}

void checkpoint_add(struct timeline *t, struct worker *w) {
    if (!w->stop.place.is_exact) return;
    size_t i = t->n_checkpoints ? checkpoint_before(t, place(w)) : 0;
    if (t->n_checkpoints && position_compare(place(t->checkpoints[i]), place(w)) == 0) return;
    struct worker *copy = session_fork(&t->session, w);
    if (!copy) return;
    if (t->n_checkpoints) i++;
    memmove(&t->checkpoints[i + 1], &t->checkpoints[i], (t->n_checkpoints - i) * sizeof *t->checkpoints);
    t->checkpoints[i] = copy;
    t->n_checkpoints++;
    checkpoints_thin(t, w->stop.work);
}

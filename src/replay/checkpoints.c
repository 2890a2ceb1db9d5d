/* Checkpoints of a timeline: copies of workers, kept where they stand. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "replay/timeline_parts.h"

#define INTERVAL_LEAST 150000 /* us */
#define INTERVAL_MOST 5000000
#define PAGE_COST_US 2 /* of the first write to a page that a copy has, too */
#define COST_SHARE 10  /* copies may cost this part of the time */
#define LEAST 4

static struct position place(const struct worker *w) { return position_of(&w->stop.place); }

/* Pages of its own, which a copy may make it pay for. */
static uint64_t private_pages(const struct worker *w) {
    char path[64];
    unsigned long size = 0, resident = 0, shared = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)w->pid);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    if (fscanf(f, "%lu %lu %lu", &size, &resident, &shared) != 3) resident = shared = 0;
    fclose(f);
    return resident > shared ? resident - shared : 0;
}

static uint64_t available_pages(void) {
    char line[128];
    unsigned long kb = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %lu kB", &kb) != 1) {}
    if (f) fclose(f);
    return kb / 4;
}

void checkpoints_plan(struct timeline *t, const struct worker *w) {
    uint64_t pages = private_pages(w) + w->stop.copied + 256, us = pages * PAGE_COST_US * COST_SHARE;
    uint64_t most = t->n_checkpoints + available_pages() / 2 / pages;
    t->interval_us = us < INTERVAL_LEAST ? INTERVAL_LEAST : us > INTERVAL_MOST ? INTERVAL_MOST : us;
    t->most_checkpoints = most < LEAST ? LEAST : most > CHECKPOINTS_MAX ? CHECKPOINTS_MAX : most;
}

size_t checkpoint_before(const struct timeline *t, struct position to) {
    size_t i = t->n_checkpoints - 1;
    while (i > 0 && position_compare(place(t->checkpoints[i]), to) > 0) i--;
    return i;
}

bool checkpoint_strictly_before(const struct timeline *t, struct position limit, size_t *i) {
    *i = checkpoint_before(t, limit);
    if (position_compare(place(t->checkpoints[*i]), limit) < 0) return true;
    return *i && (--*i, true);
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
    while (t->n_checkpoints > t->most_checkpoints) {
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
    checkpoints_plan(t, w);
    struct worker *copy = session_fork(&t->session, w);
    if (!copy) return;
    if (t->n_checkpoints) i++;
    memmove(&t->checkpoints[i + 1], &t->checkpoints[i], (t->n_checkpoints - i) * sizeof *t->checkpoints);
    t->checkpoints[i] = copy;
    t->n_checkpoints++;
    checkpoints_thin(t, w->stop.work);
}

static struct worker *restore(struct timeline *t, size_t k) {
    int image = inherited_fetch(t, k) ? stored_image(&t->stored, k) : -1;
    if (image < 0) return NULL;
    struct worker *w = session_restore(&t->session, image);
    close(image);
    if (w && w->stop.reason != WORKER_FAILED) return w;
    session_kill(&t->session, w);
    return NULL;
}

/* A signal right behind the checkpoint takes the worker further than its place is. */
struct worker *checkpoint_restore(struct timeline *t, struct position to, bool strictly, struct position nearest) {
    for (size_t k = stored_before(&t->stored, to); k != STORED_NONE; k = k ? k - 1 : STORED_NONE) {
        struct position at = stored_place(&t->stored, k);
        if (strictly && position_compare(at, to) >= 0) continue;
        if (position_compare(at, nearest) <= 0) return NULL;
        struct worker *w = restore(t, k);
        if (!w || !w->stop.place.is_exact) {
            session_kill(&t->session, w);
            stored_close(&t->stored); /* without them it takes longer */
            return NULL;
        }
        int order = position_compare(place(w), to);
        if (order < 0 || (!order && !strictly)) {
            if (!worker_is_over(w)) checkpoint_add(t, w);
            return w;
        }
        session_kill(&t->session, w);
    }
    return NULL;
}

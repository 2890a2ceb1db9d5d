#include "ckpt/rt/track.h"

#include <linux/mman.h>

#include "ckpt/rt/saver.h"
#include "ckpt/rt/track_parts.h"
#include "engine/cache.h"
#include "inproc/lock.h"

#define CHANGED_MOST 2048 /* ranges: more become coarser */

enum track_choice track_wanted;
bool track_is_on;

static const struct track_backend *backend;
/* Two of each: while the sets of one collection are used, the next interval fills the others. */
static struct ranges changed[2] = {{.most = CHANGED_MOST}, {.most = CHANGED_MOST}};
static struct ranges written;
static unsigned present; /* which of `changed` is being filled */

const char *track_name(void) { return backend ? backend->name : "none"; }

bool track_start(void) {
    static const struct track_backend *const all[] = {&track_uffd, &track_mprotect};
    if (track_is_on) return true;
    backend = NULL;
    for (size_t i = 0; i < ARRAY_LEN(all) && !backend; i++) {
        bool fits = track_wanted == TRACK_AUTOMATIC || (track_wanted == TRACK_UFFD) == (all[i] == &track_uffd);
        if (fits && all[i]->start()) backend = all[i];
    }
    if (!backend) return false;
    ranges_clear(&changed[present]);
    ranges_add(&changed[present], 0, UINT64_MAX & PAGE_MASK);
    track_is_on = true;
    return true;
}

void track_after_fork(void) {
    if (backend) backend->forget();
    backend = NULL;
    track_is_on = false;
}

void track_changed(gaddr start, gaddr end) {
    if (likely(!track_is_on)) return;
    start = PAGE_DOWN(start);
    end = end > (UINT64_MAX & PAGE_MASK) ? UINT64_MAX & PAGE_MASK : PAGE_UP(end);
    ranges_add(&changed[present], start, end);
    if (backend->changed) backend->changed(start, end);
}

void track_opened(gaddr start, gaddr end) {
    if (unlikely(track_is_on) && backend->opened) backend->opened(PAGE_DOWN(start), PAGE_UP(end));
}

/* ---- collecting ---- */

/* What borrowed pages hold is in the log when it is of interest; guards hold nothing. */
static bool is_ours(const struct mapping *m) {
    return !m->runtime && !m->borrowed && !m->guarded && (m->flags & MAP_TYPE) == MAP_PRIVATE;
}

/* The mapping, piece by piece: changed, not changed. */
static enum collected collect_pieces(const struct mapping *m, const struct ranges *news) {
    gaddr at = m->start;
    for (size_t i = ranges_above(news, at); at < m->end;) {
        bool is_new = i < news->n && news->list[i].start <= at;
        gaddr stop = m->end;
        if (i < news->n) stop = MIN(stop, is_new ? news->list[i].end : news->list[i].start);
        i += is_new;
        enum collected c = backend->collect(m, at, stop, is_new, &written);
        if (c != COLLECTED) return c;
        at = stop;
    }
    return COLLECTED;
}

/* What the kernel has stopped tracking counts as new, all of it. */
static bool collect_mapping(const struct mapping *m, struct ranges *news) {
    size_t n = written.n;
    struct ckpt_range last = n ? written.list[n - 1] : (struct ckpt_range){0, 0};
    enum collected c = collect_pieces(m, news);
    if (c == COLLECT_LOST) {
        written.n = n;
        if (n) written.list[n - 1] = last;
        ranges_add(news, m->start, m->end);
        c = collect_pieces(m, news);
    }
    return c == COLLECTED;
}

struct job {
    struct track_set *out;
    bool fine;
};

static void collect(void *arg) {
    struct job *j = arg;
    struct ranges *news = &changed[present];
    struct mapping m;
    lock_take(&cache_lock);
    present ^= 1;
    ranges_clear(&changed[present]);
    lock_drop(&cache_lock);
    ranges_clear(&written);
    j->fine = true;
    for (size_t i = 0; j->fine && aspace_nth(i, &m); i++)
        if (is_ours(&m)) j->fine = collect_mapping(&m, news);
    *j->out = (struct track_set){news->list, news->n, written.list, written.n, 0};
    for (size_t i = 0; i < written.n; i++) j->out->n_pages += (written.list[i].end - written.list[i].start) / PAGE_SIZE;
}

bool track_collect(struct track_set *out) {
    struct job j = {out, false};
    saver_do(collect, &j);
    return j.fine;
}

#include "ckpt/rt/ranges.h"

#include "inproc/arena.h"
#include "inproc/str.h"

static void grow(struct ranges *r) {
    size_t room = r->room ? r->room * 2 : PAGE_SIZE / sizeof *r->list;
    struct ckpt_range *bigger = arena_pages(room * sizeof *bigger);
    if (r->room) {
        memcpy(bigger, r->list, r->n * sizeof *bigger);
        arena_free_pages(r->list, r->room * sizeof *bigger);
    }
    r->list = bigger;
    r->room = room;
}

size_t ranges_above(const struct ranges *r, gaddr addr) {
    size_t lo = 0, hi = r->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (r->list[mid].end > addr)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

bool ranges_hold(const struct ranges *r, gaddr addr) {
    size_t i = ranges_above(r, addr);
    return i < r->n && r->list[i].start <= addr;
}

/* Half as many: each two neighbours become one. */
static void coarsen(struct ranges *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i += 2) {
        size_t last = i + 1 < r->n ? i + 1 : i;
        r->list[n++] = (struct ckpt_range){r->list[i].start, r->list[last].end};
    }
    r->n = n;
}

void ranges_append(struct ranges *r, gaddr start, gaddr end) {
    if (start >= end) return;
    if (r->n && r->list[r->n - 1].end == start) {
        r->list[r->n - 1].end = end;
        return;
    }
    if (r->n == r->room) grow(r);
    r->list[r->n++] = (struct ckpt_range){start, end};
}

void ranges_add(struct ranges *r, gaddr start, gaddr end) {
    if (start >= end) return;
    size_t i = start ? ranges_above(r, start - 1) : 0, k = i; /* those that it touches become one with it */
    while (k < r->n && r->list[k].start <= end) k++;
    if (k > i) {
        start = MIN(start, r->list[i].start);
        end = MAX(end, r->list[k - 1].end);
        r->list[i] = (struct ckpt_range){start, end};
        memmove(&r->list[i + 1], &r->list[k], (r->n - k) * sizeof *r->list);
        r->n -= k - i - 1;
        return;
    }
    if (r->n == r->room) grow(r);
    memmove(&r->list[i + 1], &r->list[i], (r->n - i) * sizeof *r->list);
    r->list[i] = (struct ckpt_range){start, end};
    r->n++;
    if (r->most && r->n > r->most) coarsen(r);
}

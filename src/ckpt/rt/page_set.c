#include "ckpt/rt/page_set.h"

#include "inproc/arena.h"
#include "inproc/str.h"

static struct page_set_chunk *slot_of(const struct page_set *s, uint64_t number) {
    uint64_t i = (number * 0x9e3779b97f4a7c15ull >> 32) & s->mask;
    while (s->table[i].number && s->table[i].number != number + 1) i = (i + 1) & s->mask;
    return &s->table[i];
}

static void grow(struct page_set *s) {
    struct page_set_chunk *old = s->table;
    uint64_t n = old ? s->mask + 1 : 0;
    s->mask = n ? n * 2 - 1 : 255;
    s->table = arena_pages((s->mask + 1) * sizeof *s->table);
    for (uint64_t i = 0; i < n; i++)
        if (old[i].number) *slot_of(s, old[i].number - 1) = old[i];
    if (old) arena_free_pages(old, n * sizeof *old);
}

static struct page_set_chunk *chunk_of(struct page_set *s, gaddr page, bool make) {
    if (make && (!s->table || s->used * 2 > s->mask)) grow(s);
    if (!s->table) return NULL;
    struct page_set_chunk *c = slot_of(s, page / PAGE_SET_CHUNK);
    if (c->number) return c;
    if (!make) return NULL;
    c->number = page / PAGE_SET_CHUNK + 1;
    s->used++;
    return c;
}

static unsigned bit_of(gaddr page) { return (unsigned)(page / PAGE_SIZE % 512); }

static void set_range(struct page_set *s, gaddr start, gaddr end, bool on) {
    while (start < end) {
        gaddr stop = MIN(end, (start / PAGE_SET_CHUNK + 1) * PAGE_SET_CHUNK);
        struct page_set_chunk *c = chunk_of(s, start, on);
        for (; c && start < stop; start += PAGE_SIZE) {
            uint64_t bit = 1ull << bit_of(start) % 64, *word = &c->bits[bit_of(start) / 64];
            *word = on ? *word | bit : *word & ~bit;
        }
        start = stop;
    }
}

void page_set_add(struct page_set *s, gaddr start, gaddr end) { set_range(s, start, end, true); }
void page_set_remove(struct page_set *s, gaddr start, gaddr end) { set_range(s, start, end, false); }

bool page_set_has(const struct page_set *s, gaddr page) {
    const struct page_set_chunk *c = s->table ? slot_of(s, page / PAGE_SET_CHUNK) : NULL;
    return c && c->number && c->bits[bit_of(page) / 64] >> bit_of(page) % 64 & 1;
}

/* The first page from `at` on that is in the set, or is not. */
static gaddr seek(const struct page_set *s, gaddr at, gaddr end, bool in) {
    while (at < end) {
        gaddr stop = MIN(end, (at / PAGE_SET_CHUNK + 1) * PAGE_SET_CHUNK);
        const struct page_set_chunk *c = slot_of(s, at / PAGE_SET_CHUNK);
        if (!c->number && !in) return at;
        for (; c->number && at < stop; at += PAGE_SIZE)
            if ((c->bits[bit_of(at) / 64] >> bit_of(at) % 64 & 1) == in) return at;
        at = stop;
    }
    return end;
}

bool page_set_next(const struct page_set *s, gaddr *start, gaddr *stop, gaddr end) {
    if (!s->table) return false;
    *start = seek(s, *start, end, true);
    if (*start >= end) return false;
    *stop = seek(s, *start, end, false);
    return true;
}

void page_set_clear(struct page_set *s) {
    if (s->table) memset(s->table, 0, (s->mask + 1) * sizeof *s->table);
    s->used = 0;
}

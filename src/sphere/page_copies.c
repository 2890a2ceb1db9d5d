#include "sphere/page_copies.h"

#include "inproc/arena.h"

#define ROOM_AT_FIRST 256

static struct page_copy *slot_of(const struct page_copies *t, struct shared_at at) {
    uint64_t i = (at.object * 31 + at.page) * 0x9e3779b97f4a7c15ull >> 20 & (t->room - 1);
    while (t->slots[i].at.object && (t->slots[i].at.object != at.object || t->slots[i].at.page != at.page))
        i = (i + 1) & (t->room - 1);
    return &t->slots[i];
}

static void grow(struct page_copies *t) {
    struct page_copies old = *t;
    t->room = old.room ? old.room * 2 : ROOM_AT_FIRST;
    t->slots = arena_pages(t->room * sizeof *t->slots);
    for (uint64_t i = 0; i < old.room; i++)
        if (old.slots[i].at.object) *slot_of(t, old.slots[i].at) = old.slots[i];
    if (old.slots) arena_free_pages(old.slots, old.room * sizeof *old.slots);
}

struct page_copy *page_copies_find(const struct page_copies *t, struct shared_at at) {
    struct page_copy *c = t->room ? slot_of(t, at) : NULL;
    return c && c->at.object ? c : NULL;
}

struct page_copy *page_copies_make(struct page_copies *t, struct shared_at at) {
    if (t->used * 2 >= t->room) grow(t);
    struct page_copy *c = slot_of(t, at);
    if (!c->at.object) {
        *c = (struct page_copy){.at = at};
        t->used++;
    }
    return c;
}

void page_copies_drop(struct page_copies *t) {
    if (t->slots) arena_free_pages(t->slots, t->room * sizeof *t->slots);
    *t = (struct page_copies){0};
}

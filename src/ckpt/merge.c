/* Consolidation: two checkpoints of a level become one of the next. Data stays where it is, except that blocks in the last part
 * of the file move forward when much of it is free: metadata is written anew here anyway. */
#include <stdlib.h>
#include <string.h>

#include "ckpt/store_parts.h"

#define TAIL_SHARE 8 /* one part of so many of the file may be free */

struct slot_list {
    uint32_t *list;
    size_t n, room;
};

struct merge {
    const struct meta *older, *newer;
    struct draft draft;
    struct slot_list spare; /* not needed any more when the new one is there */
    struct slot_list fresh; /* not needed if it does not come to that */
};

static bool add_slot(struct slot_list *s, uint32_t slot) {
    if (s->n == s->room) {
        size_t room = s->room ? s->room * 2 : 1024;
        uint32_t *bigger = reallocarray(s->list, room, sizeof *bigger);
        if (!bigger) return false;
        s->list = bigger;
        s->room = room;
    }
    s->list[s->n++] = slot;
    return true;
}

static bool spare_block(struct merge *g, const struct meta_block *b) {
    return b->slot == META_ZERO_SLOT || add_slot(&g->spare, b->slot);
}

static void give_back(struct ckpt_store *s, const struct slot_list *list) {
    for (size_t i = 0; i < list->n; i++) slots_give_back(&s->slots, list->list[i]);
}

static bool spare_page(struct merge *g, const struct meta_page *p) {
    for (unsigned k = 0; k < (unsigned)__builtin_popcountll(p->blocks); k++)
        if (!spare_block(g, &g->older->blocks[p->first + k])) return false;
    return true;
}

static bool copy_page(struct merge *g, const struct meta *from, const struct meta_page *p) {
    if (!draft_page(&g->draft, p->address)) return false;
    const struct meta_block *b = &from->blocks[p->first];
    for (uint64_t left = p->blocks; left; left &= left - 1)
        if (!draft_block(&g->draft, (unsigned)__builtin_ctzll(left), *b++)) return false;
    return true;
}

/* A page that both have: each block of the newer one, and those of the older one that it does not have. */
static bool join_page(struct merge *g, const struct meta_page *old, const struct meta_page *new) {
    if (!draft_page(&g->draft, new->address)) return false;
    for (uint64_t left = old->blocks | new->blocks; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        bool in_new = new->blocks >> i & 1, in_old = old->blocks >> i & 1;
        const struct meta_block *b = in_new ? meta_block_of(g->newer, new, i) : meta_block_of(g->older, old, i);
        if (!draft_block(&g->draft, i, *b)) return false;
        if (in_new && in_old && !spare_block(g, meta_block_of(g->older, old, i))) return false;
    }
    return true;
}

static bool join_pages(struct merge *g) {
    const struct meta *a = g->older, *b = g->newer;
    size_t i = 0, k = 0;
    bool fine = true;
    while (fine && (i < a->head->n_pages || k < b->head->n_pages)) {
        const struct meta_page *old = i < a->head->n_pages ? &a->pages[i] : NULL;
        const struct meta_page *new = k < b->head->n_pages ? &b->pages[k] : NULL;
        if (old && new && old->address != new->address) {
            if (old->address < new->address)
                new = NULL;
            else
                old = NULL;
        }
        i += old != NULL;
        k += new != NULL;
        if (old && meta_drops(b, old->address)) {
            fine = spare_page(g, old);
            old = NULL;
        }
        if (old && new)
            fine = join_page(g, old, new);
        else if (fine && (old || new))
            fine = copy_page(g, old ? a : b, old ? old : new);
    }
    return fine;
}

static bool join_ranges(struct merge *g) {
    const struct meta *a = g->older, *b = g->newer;
    size_t i = 0, k = 0;
    while (i < a->head->n_dropped || k < b->head->n_dropped) {
        bool from_a = k == b->head->n_dropped || (i < a->head->n_dropped && a->dropped[i].start <= b->dropped[k].start);
        if (!draft_drop(&g->draft, from_a ? a->dropped[i++] : b->dropped[k++])) return false;
    }
    return true;
}

/* ---- moving ---- */

/* From here on the file would be empty if all that is in use lay at its start. */
static uint64_t tail_of(const struct slots *s) { return s->n - s->used > s->used / TAIL_SHARE ? s->used : s->n; }

static bool move_block(struct ckpt_store *s, struct merge *g, struct meta_block *b) {
    if (!spare_block(g, b)) return false;
    uint32_t slot = slots_put(&s->slots, slots_at(&s->slots, b->slot));
    if (slot == SLOTS_NONE) return false;
    b->slot = slot;
    return add_slot(&g->fresh, slot);
}

/* What was moved must be in the file before metadata says so. */
static bool move_tail(struct ckpt_store *s, struct merge *g) {
    uint64_t tail = tail_of(&s->slots);
    if (tail == s->slots.n) return true;
    if (!slots_look(&s->slots)) return false;
    for (size_t i = 0; i < g->draft.n_blocks; i++) {
        struct meta_block *b = &g->draft.blocks[i];
        if (b->slot != META_ZERO_SLOT && b->slot >= tail && !move_block(s, g, b)) return false;
    }
    return slots_flush(&s->slots);
}

/* Only when the new one is there do the old ones go, and only then are their slots free. */
static void replace(struct ckpt_store *s, size_t i, struct merge *g, const struct meta *joined) {
    files_remove(s, s->list[i].head->first, s->list[i].head->last);
    files_remove(s, s->list[i + 1].head->first, s->list[i + 1].head->last);
    meta_unmap(&s->list[i]);
    meta_unmap(&s->list[i + 1]);
    s->list[i] = *joined;
    memmove(&s->list[i + 1], &s->list[i + 2], (s->n - i - 2) * sizeof *s->list);
    s->n--;
    give_back(s, &g->spare);
}

static bool merge_at(struct ckpt_store *s, size_t i) {
    struct merge g = {.older = &s->list[i], .newer = &s->list[i + 1]};
    const struct meta_head *a = g.older->head, *b = g.newer->head;
    struct meta_head head = {
        .level = b->level + 1, .first = a->first, .last = b->last, .place = b->place, .saved = b->saved};
    struct meta joined;
    bool fine = join_pages(&g) && (i == 0 || join_ranges(&g)) && move_tail(s, &g) &&
                store_publish(s, &head, &g.draft, g.newer->state, b->state_len, &joined);
    if (fine)
        replace(s, i, &g, &joined);
    else
        give_back(s, &g.fresh);
    s->slots.run_n = 0; /* of a failure */
    draft_free(&g.draft);
    free(g.spare.list);
    free(g.fresh.list);
    return fine;
}

/* Index of the oldest of a level that has `most` or more; s->n: none has. Levels never grow towards the end. */
static size_t crowded(const struct ckpt_store *s, uint32_t level, size_t most) {
    for (size_t i = 0; i < s->n; i++) {
        if (s->list[i].head->level != level) continue;
        bool is_crowded = i + most <= s->n && s->list[i + most - 1].head->level == level;
        return is_crowded ? i : s->n;
    }
    return s->n;
}

bool store_make_way(struct ckpt_store *s) {
    size_t most = 2; /* the third is still to come */
    for (uint32_t level = 0;; level++, most = 3) {
        size_t i = crowded(s, level, most);
        if (i == s->n) return true;
        if (!merge_at(s, i)) return false;
    }
}

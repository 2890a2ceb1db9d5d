/* Writing checkpoints: pages are compared with what is stored, and blocks that differ get slots. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/store_parts.h"

const char *ckpt_error(const struct ckpt_store *s) { return s->error; }

bool store_fails(struct ckpt_store *s, const char *what) {
    snprintf(s->error, sizeof s->error, "%s: %s", what, strerror(errno));
    ckpt_abort(s);
    return false;
}

static bool refuse(struct ckpt_store *s, const char *what) {
    snprintf(s->error, sizeof s->error, "%s", what);
    ckpt_abort(s);
    return false;
}

bool store_publish(struct ckpt_store *s, struct meta_head *head, const struct draft *d, const void *state, size_t len,
                   struct meta *out) {
    int fd = files_new_meta(s);
    if (fd < 0) return false;
    char why[256];
    head->stream = s->stream;
    bool fine = meta_write(fd, head, d, state, len);
    if (fine && !meta_map(out, fd, s->slots.n, why)) fine = false, errno = EIO;
    if (fine && !files_publish(s, fd, head->first, head->last)) {
        fine = false;
        meta_unmap(out);
    }
    close(fd);
    return fine;
}

void ckpt_abort(struct ckpt_store *s) {
    for (size_t i = 0; i < s->draft.n_blocks; i++)
        if (s->draft.blocks[i].slot != META_ZERO_SLOT) slots_give_back(&s->slots, s->draft.blocks[i].slot);
    draft_free(&s->draft);
    s->slots.run_n = 0;
    s->is_open = false;
}

static int by_start(const void *a, const void *b) {
    uint64_t x = ((const struct ckpt_range *)a)->start, y = ((const struct ckpt_range *)b)->start;
    return x < y ? -1 : x > y;
}

/* The first checkpoint has nothing before it that could be dropped. */
static bool note_dropped(struct ckpt_store *s, const struct ckpt_range *list, size_t n) {
    if (!s->n || !n) return true;
    struct ckpt_range *sorted = reallocarray(NULL, n, sizeof *sorted);
    bool fine = sorted != NULL;
    if (fine) {
        memcpy(sorted, list, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, by_start);
    }
    for (size_t i = 0; fine && i < n; i++) {
        struct ckpt_range r = {sorted[i].start / CKPT_PAGE * CKPT_PAGE,
                               (sorted[i].end + CKPT_PAGE - 1) / CKPT_PAGE * CKPT_PAGE};
        if (r.end > META_ADDRESS_END) r.end = META_ADDRESS_END;
        if (r.start < r.end) fine = draft_drop(&s->draft, r);
    }
    free(sorted);
    return fine;
}

bool ckpt_begin(struct ckpt_store *s, const struct ckpt_place *place, const struct ckpt_range *dropped, size_t n) {
    if (!s->writes) return refuse(s, "the checkpoints were opened for reading");
    if (s->is_open) ckpt_abort(s);
    s->error[0] = '\0';
    if (!store_make_way(s)) return store_fails(s, "cannot merge checkpoints");
    if (!slots_look(&s->slots)) return store_fails(s, "cannot map checkpoints");
    s->is_open = true;
    s->place = *place;
    return note_dropped(s, dropped, n) ? true : store_fails(s, "cannot take a checkpoint");
}

/* ---- pages ---- */

static const uint8_t zeros[CKPT_BLOCK];

static bool is_zero(const uint8_t *block) { return memcmp(block, zeros, CKPT_BLOCK) == 0; }

/* Whether a restore would give these bytes already. `at`: where the block is stored, if it is known. */
static bool is_there(const struct ckpt_store *s, const struct meta_block *at, enum ckpt_base base,
                     const uint8_t *block) {
    if (!at) return base == CKPT_BASE_ZERO && is_zero(block);
    if (at->slot == META_ZERO_SLOT) return is_zero(block);
    return memcmp(slots_at(&s->slots, at->slot), block, CKPT_BLOCK) == 0;
}

static bool save_block(struct ckpt_store *s, unsigned i, const uint8_t *block) {
    if (is_zero(block)) return draft_block(&s->draft, i, (struct meta_block){META_ZERO_SLOT, 0});
    uint32_t slot = slots_put(&s->slots, block);
    if (slot == SLOTS_NONE) return false;
    if (draft_block(&s->draft, i, (struct meta_block){slot, slots_check(block)})) return true;
    slots_give_back(&s->slots, slot);
    return false;
}

bool ckpt_page(struct ckpt_store *s, uint64_t address, enum ckpt_base base, const void *bytes) {
    struct meta_block at[CKPT_PAGE_BLOCKS];
    if (!s->is_open) return false;
    if (address % CKPT_PAGE || address >= META_ADDRESS_END) return refuse(s, "a page has an address that no page has");
    bool gone = !s->n || draft_drops(&s->draft, address);
    uint64_t known = gone ? 0 : store_locate(s, s->n - 1, address, at);
    bool fine = draft_page(&s->draft, address);
    for (unsigned i = 0; fine && i < CKPT_PAGE_BLOCKS; i++) {
        const uint8_t *block = (const uint8_t *)bytes + i * CKPT_BLOCK;
        if (!is_there(s, known >> i & 1 ? &at[i] : NULL, base, block)) fine = save_block(s, i, block);
    }
    if (!fine) return store_fails(s, "cannot store a page");
    draft_end_page(&s->draft);
    return true;
}

static void trim(struct ckpt_store *s) {
    uint64_t spare = s->slots.n - s->slots.used;
    if (spare < s->trimmed) s->trimmed = spare;
    if (spare - s->trimmed <= s->slots.used / 32) return;
    slots_trim(&s->slots);
    s->trimmed = spare;
}

bool ckpt_commit(struct ckpt_store *s, const void *state, size_t len) {
    if (!s->is_open) return false;
    const struct meta_head *last = s->n ? s->list[s->n - 1].head : NULL;
    if (!draft_sort(&s->draft)) return store_fails(s, "a page came twice");
    if (!slots_flush(&s->slots)) return store_fails(s, "cannot store a checkpoint");
    uint64_t number = last ? last->last + 1 : 0;
    struct meta_head head = {
        .first = number, .last = number, .place = s->place, .saved = (last ? last->saved : 0) + s->draft.n_blocks};
    if (!store_publish(s, &head, &s->draft, state, len, &s->list[s->n]))
        return store_fails(s, "cannot store a checkpoint");
    s->n++;
    draft_free(&s->draft);
    s->is_open = false;
    trim(s);
    return true;
}

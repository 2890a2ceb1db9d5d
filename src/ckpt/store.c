/* Reading a checkpoint store. */
#include "ckpt/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt/store_parts.h"

#define UNDO_RECORD 72 /* a block and its address */

const char *ckpt_damage(const struct ckpt_store *s) { return s->damage; }
size_t ckpt_count(const struct ckpt_store *s) { return s->n; }

bool ckpt_info(const struct ckpt_store *s, size_t i, struct ckpt_info *out) {
    if (i >= s->n) return false;
    const struct meta_head *h = s->list[i].head;
    *out = (struct ckpt_info){.place = h->place,
                              .first = h->first,
                              .last = h->last,
                              .level = h->level,
                              .pages = h->n_pages,
                              .blocks = h->n_blocks,
                              .state_len = h->state_len};
    return true;
}

const void *ckpt_state(const struct ckpt_store *s, size_t i, size_t *len) {
    if (i >= s->n) return NULL;
    *len = s->list[i].head->state_len;
    return s->list[i].state;
}

size_t ckpt_before(const struct ckpt_store *s, uint64_t event, uint64_t ticks) {
    for (size_t i = s->n; i--;) {
        const struct ckpt_place *p = &s->list[i].head->place;
        if (p->event < event || (p->event == event && p->ticks <= ticks)) return i;
    }
    return SIZE_MAX;
}

struct ckpt_space ckpt_space(const struct ckpt_store *s) {
    struct stat st;
    struct ckpt_space out = {0};
    for (size_t i = 0; i < s->n; i++) out.meta += s->list[i].size;
    if (s->n) {
        out.taken = s->list[s->n - 1].head->last + 1;
        out.unconsolidated = s->list[s->n - 1].head->saved * UNDO_RECORD;
    }
    if (fstat(s->slots.fd, &st) == 0) out.data = (uint64_t)st.st_blocks * 512;
    for (size_t i = 0; i < s->n; i++) out.free += s->list[i].head->n_blocks;
    out.free = out.data > out.free * CKPT_BLOCK ? out.data - out.free * CKPT_BLOCK : 0;
    return out;
}

/* ---- pages ---- */

/* Adds what page has and nobody newer had. */
static uint64_t add_known(const struct meta *m, const struct meta_page *page, uint64_t known,
                          struct meta_block out[CKPT_PAGE_BLOCKS]) {
    const struct meta_block *b = &m->blocks[page->first];
    for (uint64_t left = page->blocks; left; left &= left - 1, b++) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        if (!(known >> i & 1)) out[i] = *b;
    }
    return known | page->blocks;
}

uint64_t store_locate(struct ckpt_store *s, size_t i, uint64_t address, struct meta_block out[CKPT_PAGE_BLOCKS]) {
    uint64_t known = 0;
    for (size_t k = i + 1; k-- && known != UINT64_MAX;) {
        struct meta *m = &s->list[k];
        const struct meta_page *page = meta_find(m, address);
        if (page) known = add_known(m, page, known, out);
        if (meta_drops(m, address)) break;
    }
    return known;
}

static bool is_intact(const struct meta_block *b, const uint8_t *bytes) { return b->check == slots_check(bytes); }

/* Blocks i.. of the page, as many as lie in a row. Returns how many; 0: damaged. */
static unsigned fetch_run(struct ckpt_store *s, const struct meta_block *at, uint64_t known, unsigned i, uint8_t *to) {
    unsigned n = 1;
    while (i + n < CKPT_PAGE_BLOCKS && known >> (i + n) & 1 && at[i + n].slot == at[i].slot + n &&
           at[i + n].slot != META_ZERO_SLOT)
        n++;
    if (!slots_read(&s->slots, at[i].slot, n, to)) return 0;
    for (unsigned k = 0; k < n; k++)
        if (!is_intact(&at[i + k], to + k * CKPT_BLOCK)) return 0;
    return n;
}

static bool fetch(struct ckpt_store *s, const struct meta_block *at, struct ckpt_restored *out, char why[256]) {
    for (unsigned i = 0; i < CKPT_PAGE_BLOCKS;) {
        uint8_t *to = out->bytes + i * CKPT_BLOCK;
        unsigned n = 1;
        if (!(out->blocks >> i & 1) || at[i].slot == META_ZERO_SLOT)
            memset(to, 0, CKPT_BLOCK);
        else
            n = fetch_run(s, at, out->blocks, i, to);
        if (!n) {
            snprintf(why, 256, "the checkpoint's data for address %#" PRIx64 " is damaged",
                     out->address + i * CKPT_BLOCK);
            return false;
        }
        i += n;
    }
    return true;
}

bool ckpt_read(const struct ckpt_store *store, size_t i, uint64_t address, struct ckpt_restored *out, char why[256]) {
    struct ckpt_store *s =
        (struct ckpt_store *)store; /* where the next search begins, and pieces of the file: no more */
    struct meta_block at[CKPT_PAGE_BLOCKS];
    why[0] = '\0';
    out->address = address / CKPT_PAGE * CKPT_PAGE;
    out->blocks = i < s->n ? store_locate(s, i, out->address, at) : 0;
    return out->blocks && fetch(s, at, out, why);
}

void ckpt_pages(const struct ckpt_store *s, size_t i, struct ckpt_cursor *c) {
    *c = (struct ckpt_cursor){.store = s, .checkpoint = i};
    if (i >= s->n) snprintf(c->why, sizeof c->why, "there is no such checkpoint");
}

/* The lowest page that any of the checkpoints has and that has not been given yet. */
static bool next_address(struct ckpt_cursor *c, uint64_t *address) {
    bool found = false;
    for (size_t k = 0; k <= c->checkpoint; k++) {
        const struct meta *m = &c->store->list[k];
        while (c->at[k] < m->head->n_pages && m->pages[c->at[k]].address < c->next) c->at[k]++;
        if (c->at[k] == m->head->n_pages) continue;
        uint64_t here = m->pages[c->at[k]].address;
        if (!found || here < *address) *address = here;
        found = true;
    }
    return found;
}

bool ckpt_next(struct ckpt_cursor *c, struct ckpt_restored *out) {
    uint64_t address = 0;
    while (!c->why[0] && next_address(c, &address)) {
        c->next = address + CKPT_PAGE;
        if (ckpt_read(c->store, c->checkpoint, address, out, c->why)) return true;
    }
    return false;
}

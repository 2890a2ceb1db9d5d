#include "engine/preset.h"

#include "engine/tables.h"
#include "inproc/arena.h"
#include "inproc/layout.h"
#include "inproc/str.h"

#define PAGE_SLOTS (PAGE_SIZE / 8)
#define SLOTS (TABLES_SIZE / 8)

struct preset_entry {
    uint32_t host; /* offset from the region's base; 0: it was taken out */
    uint32_t slot; /* in the page */
};

struct preset {
    uint32_t room;                   /* for entries */
    uint32_t first[TABLE_PAGES + 1]; /* of each page; they end where the next page's begin */
    struct preset_entry entries[];
};

/* ---- using them ---- */

bool preset_is_filled(const struct region *r, size_t page) {
    return !r->presets || (r->filled[page / 64] >> page % 64 & 1);
}

/* `slots`: the page, wherever it is. */
static void fill_page(const struct region *r, size_t page, uint64_t *slots) {
    const struct preset *p = r->presets;
    uint64_t empty = table_stub((LAYOUT_TABLES + page * PAGE_SIZE) & -(8 * TABLE_ENTRIES));
    for (uint32_t i = p->first[page]; i < p->first[page + 1]; i++) {
        uint64_t *slot = &slots[p->entries[i].slot];
        if (*slot == empty && p->entries[i].host)
            __atomic_store_n(slot, (uint64_t)(r->base + p->entries[i].host), __ATOMIC_RELEASE);
    }
}

void preset_fill(struct region *r, size_t page) {
    if (preset_is_filled(r, page)) return;
    r->filled[page / 64] |= 1ull << page % 64;
    fill_page(r, page, (uint64_t *)(LAYOUT_TABLES + page * PAGE_SIZE));
}

void preset_write(const struct region *r, uint64_t *tables) {
    for (size_t page = 0; page < TABLE_PAGES; page++) fill_page(r, page, tables + page * PAGE_SLOTS);
}

/* The entries of a page are in the order of their slots. */
static struct preset_entry *find_entry(struct preset *p, size_t page, uint32_t slot) {
    uint32_t lo = p->first[page], hi = p->first[page + 1], end = hi;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (p->entries[mid].slot < slot)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < end && p->entries[lo].slot == slot ? &p->entries[lo] : NULL;
}

void preset_forget(struct region *r, gaddr pc) {
    for (uint64_t table = LAYOUT_TABLES; table <= TABLE_CALL; table += 8 * TABLE_ENTRIES) {
        size_t slot = (size_t)(table_slot(table, pc) - (uint64_t *)LAYOUT_TABLES);
        struct preset_entry *e = find_entry(r->presets, slot / PAGE_SLOTS, (uint32_t)(slot % PAGE_SLOTS));
        if (e) e->host = 0;
    }
    r->presets_grown = true;
}

/* ---- making them ---- */

/* Small regions have entries in few pages: nothing else of the tables, or of the draft, is looked at. */
struct draft {
    const struct region *r;
    uint32_t *host;          /* for each slot of the tables: offset from the region's base, or 0 */
    uint32_t n[TABLE_PAGES]; /* entries in each page */
};

static void propose_slot(struct draft *d, size_t slot, uint32_t host) {
    if (d->host[slot]) return;
    d->host[slot] = host;
    d->n[slot / PAGE_SLOTS]++;
}

static void propose(struct draft *d, uint64_t table, gaddr pc, const uint8_t *host) {
    if (host && region_holds(d->r, host))
        propose_slot(d, (size_t)(table_slot(table, pc) - (uint64_t *)LAYOUT_TABLES), (uint32_t)(host - d->r->base));
}

static void propose_tables(struct draft *d) {
    const uint64_t *table = (const uint64_t *)LAYOUT_TABLES;
    for (size_t i = 0; i < SLOTS; i++) {
        if (i % PAGE_SLOTS == 0 && !tables_is_used(i / PAGE_SLOTS))
            i += PAGE_SLOTS - 1;
        else if (region_holds(d->r, (void *)table[i]))
            propose_slot(d, i, (uint32_t)(table[i] - (uint64_t)d->r->base));
    }
}

static void propose_old(struct draft *d) {
    const struct preset *p = d->r->presets;
    for (size_t page = 0; p && page < TABLE_PAGES; page++)
        for (uint32_t i = p->first[page]; i < p->first[page + 1]; i++)
            if (p->entries[i].host) propose_slot(d, page * PAGE_SLOTS + p->entries[i].slot, p->entries[i].host);
}

/* Which returns lead here is not known. */
static void propose_site(void *draft, gaddr pc, struct site s) {
    for (uint64_t k = 0; k < TABLES_RET; k++) propose(draft, TABLE_RET(k), pc, s.host);
}

static void propose_all(struct draft *d) {
    for (const struct block *b = d->r->blocks; b; b = b->next_in_region) {
        if (b->dead) continue;
        propose(d, TABLE_JMP, b->pc, b->entry[ENTRY_JMP_IND]);
        propose(d, TABLE_CALL, b->pc, b->entry[ENTRY_CALL_IND]);
    }
    cache_each_site(d->r, propose_site, d);
}

/* The list's own place is used again while it is large enough: what lies in a region cannot be given back. */
static struct preset *place_for(struct region *r, uint32_t n) {
    if (r->presets && r->presets->room >= n) return r->presets;
    uint32_t room = n + n / 2;
    struct preset *p = cache_meta(r, sizeof *p + room * sizeof *p->entries);
    if (p) p->room = room;
    return p;
}

static void write_down(const struct draft *d, struct preset *p) {
    uint32_t n = 0;
    for (size_t page = 0; page < TABLE_PAGES; page++) {
        p->first[page] = n;
        const uint32_t *host = &d->host[page * PAGE_SLOTS], behind = n + d->n[page];
        for (uint32_t slot = 0; n < behind; slot++)
            if (host[slot]) p->entries[n++] = (struct preset_entry){host[slot], slot};
    }
    p->first[TABLE_PAGES] = n;
}

void preset_collect(struct region *r) {
    struct draft d = {.r = r, .host = arena_try_pages(SLOTS * sizeof *d.host)};
    if (!d.host) return;
    propose_tables(&d);
    propose_old(&d);
    propose_all(&d);
    uint32_t n = 0;
    for (size_t page = 0; page < TABLE_PAGES; page++) n += d.n[page];
    struct preset *p = place_for(r, n);
    if (p) write_down(&d, p);
    r->presets = p;
    r->presets_grown = true;
    arena_free_pages(d.host, SLOTS * sizeof *d.host);
}

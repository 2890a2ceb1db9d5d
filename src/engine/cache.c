#include "engine/cache.h"

#include <linux/mman.h>

#include "engine/engine.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"

#define SEGMENT_SIZE (4ul << 20)
#define SEGMENT_SLOTS ((LAYOUT_CACHE_END - LAYOUT_CACHE) / SEGMENT_SIZE)
#define SEGMENT_CAP 8 /* live segments before the oldest is evicted */
#define BLOCK_ROOM (48 * 1024) /* the most that one block with its records can take */
#define KEPT_SLOT_SHIFT 18
#define KEPT_MAP_START 1024 /* entries of a fresh kept region's map */

struct lock cache_lock;
struct cache_stats cache_stats;

static struct region *regions; /* all, newest first */
static struct region *current; /* where low code goes now */
static uint64_t epoch = 1;
static struct map *the_map; /* of everything that no kept region holds */
static struct region *kept_slots[(LAYOUT_LIB_END - LAYOUT_LIB_BASE) >> KEPT_SLOT_SHIFT];
static struct region *kept_low;

struct region *region_first(void) { return regions; }
bool region_holds(const struct region *r, const void *p) { return (const uint8_t *)p >= r->base && (const uint8_t *)p < r->end; }

struct region *cache_kept_region(gaddr pc) {
    if (pc - LAYOUT_LIB_BASE < LAYOUT_LIB_END - LAYOUT_LIB_BASE)
        return __atomic_load_n(&kept_slots[(pc - LAYOUT_LIB_BASE) >> KEPT_SLOT_SHIFT], __ATOMIC_ACQUIRE);
    return pc < LAYOUT_LIB_BASE ? __atomic_load_n(&kept_low, __ATOMIC_ACQUIRE) : NULL;
}

void cache_set_kept_region(gaddr base, size_t span, struct region *r) {
    if (base < LAYOUT_LIB_BASE) {
        __atomic_store_n(&kept_low, r, __ATOMIC_RELEASE);
        return;
    }
    for (gaddr at = base; at < base + span; at += 1ul << KEPT_SLOT_SHIFT)
        __atomic_store_n(&kept_slots[(at - LAYOUT_LIB_BASE) >> KEPT_SLOT_SHIFT], r, __ATOMIC_RELEASE);
}

/* ---- what is where ---- */

enum key_kind { KEY_BLOCK = 0, KEY_SITE = 1, KEY_CALL = 2, KEY_PAGE = 3 };

static uint64_t key_of(gaddr a, enum key_kind kind) { return (a + 1) | (uint64_t)kind << 62; }

/* Kept regions know their own; whatever did not fit there is in the common map. */
static uint64_t lookup(gaddr a, enum key_kind kind) {
    struct region *r = cache_kept_region(a);
    uint64_t v = r ? map_get(__atomic_load_n(&r->map, __ATOMIC_ACQUIRE), key_of(a, kind)) : 0;
    return v ? v : map_get(__atomic_load_n(&the_map, __ATOMIC_ACQUIRE), key_of(a, kind));
}

static struct map *grown_copy(struct region *r, const struct map *old) {
    uint64_t entries = map_grown(old);
    struct map *m = r ? cache_meta(r, map_bytes(entries)) : arena_pages(map_bytes(entries));
    if (!m) return NULL;
    if (r) memset(m, 0, map_bytes(entries));
    map_init(m, entries);
    map_copy(m, old);
    return m; /* the old one stays for readers that are in it */
}

/* r: the kept region whose map it goes into; NULL: the common one. False: the kept region has no room for a larger map. */
static bool record(struct region *r, gaddr a, enum key_kind kind, uint64_t value) {
    struct map **m = r ? &r->map : &the_map;
    if (map_put(*m, key_of(a, kind), value)) return true;
    struct map *larger = grown_copy(r, *m);
    if (!larger) return false;
    __atomic_store_n(m, larger, __ATOMIC_RELEASE);
    return map_put(*m, key_of(a, kind), value);
}

static struct region *kept_of(const struct block *b) { return b->is_kept ? cache_kept_region(b->pc) : NULL; }

struct block *cache_find(gaddr pc) { return (struct block *)lookup(pc, KEY_BLOCK); }

/* A site's two addresses in one word: the sequence is shorter than 256 bytes. */
struct site cache_find_site(gaddr pc) {
    uint64_t v = lookup(pc, KEY_SITE);
    uint8_t *host = (uint8_t *)(v & ((1ull << 56) - 1));
    return (struct site){host, host + (v >> 56)};
}

/* A kept region takes only what lies in itself. */
static struct region *kept_home(gaddr pc, const void *thing) {
    struct region *r = cache_kept_region(pc);
    return r && region_holds(r, thing) ? r : NULL;
}

void cache_add_site(gaddr pc, struct site s) {
    record(kept_home(pc, s.host), pc, KEY_SITE, (uint64_t)s.host | (uint64_t)(s.cont - s.host) << 56);
}

struct block *cache_find_call(gaddr pc) { return (struct block *)lookup(pc, KEY_CALL); }

void cache_add_call(gaddr pc, struct block *b) { record(kept_home(pc, b), pc, KEY_CALL, (uint64_t)b); }

uint8_t *cache_insn_host(const struct block *b, gaddr pc) {
    for (int i = 0; i < b->n_insns; i++)
        if (b->pc + b->map[i].guest_off == pc) return b->host + b->map[i].host_off;
    return NULL;
}

/* ---- regions ---- */

static uint8_t *make_trampoline(struct emitter *e, struct region *r, int fn) {
    uint8_t *at = e->p;
    if (fn == TB_FN_EXIT) emit_store_tb_u64(e, TB_EXIT_REGION, (uint64_t)r);
    emit_jmp_tb(e, fn);
    return at;
}

void region_list_add(struct region *r) {
    r->next = regions;
    __atomic_store_n(&regions, r, __ATOMIC_RELEASE);
}

struct region *region_make(uint64_t base, size_t size, bool is_kept) {
    long got = SYS(mmap, base, size, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
    if (got != (long)base) return NULL;
    struct region *r = (struct region *)base;
    r->base = (uint8_t *)base;
    r->end = r->base + size;
    r->code_next = r->base + ((sizeof *r + 63) & ~63ull);
    r->meta_next = r->end;
    r->granules = cache_meta(r, size / GRANULE * sizeof *r->granules);
    r->is_kept = is_kept;
    if (is_kept) {
        r->map = cache_meta(r, map_bytes(KEPT_MAP_START));
        map_init(r->map, KEPT_MAP_START);
    }
    struct emitter e = {r->code_next, r->end, false};
    r->tramp_exit = make_trampoline(&e, r, TB_FN_EXIT);
    r->tramp_ret_fail = make_trampoline(&e, r, TB_FN_RET_MISS);
    r->tramp_jmp_fail = make_trampoline(&e, r, TB_FN_JMP_MISS);
    r->tramp_call_fail = make_trampoline(&e, r, TB_FN_CALL_FAIL);
    r->code_next = e.p;
    region_list_add(r);
    return r;
}

static bool region_has_room(const struct region *r) { return r->meta_next - r->code_next >= BLOCK_ROOM; }

static void unlink_exit(struct exit *x);
static void tables_forget(gaddr pc);

static bool in_low_window(const struct region *r) {
    return (uint64_t)r->base >= LAYOUT_CACHE && (uint64_t)r->base < LAYOUT_CACHE_END;
}

static void region_unmap(struct region *r) {
    for (struct region **p = &regions; *p; p = &(*p)->next)
        if (*p == r) {
            *p = r->next;
            break;
        }
    gaddr base = (gaddr)r->base;
    size_t size = (size_t)(r->end - r->base);
    bool low = in_low_window(r), kept = r->is_kept;
    SYS(munmap, base, size);
    if (!low && !kept) engine_host.unclaim(base, size);
}

static void reclaim_retired(void) {
    uint64_t oldest = engine_host.oldest_epoch();
    for (struct region *r = regions, *next; r; r = next) {
        next = r->next;
        if (r->retired && r->retired_epoch <= oldest) region_unmap(r);
    }
}

static void forget_sites(const struct region *r, struct map *m) {
    for (uint64_t i = 0; i <= m->mask; i++) {
        struct map_slot *s = &m->slots[i];
        if (s->key >> 62 != KEY_SITE || !region_holds(r, (void *)(s->value & ((1ull << 56) - 1)))) continue;
        s->value = 0;
        tables_forget((s->key & ((1ull << 62) - 1)) - 1);
    }
}

/* Entries and return landings that were made in r for blocks that live elsewhere. */
static void forget_strays(struct region *r) {
    for (struct region *o = regions; o; o = o->next) {
        for (struct block *b = o->blocks; b; b = b->next_in_region) {
            if (b->dead) continue;
            for (int k = ENTRY_CALL; k < ENTRY_KINDS; k++) {
                if (!region_holds(r, b->entry[k])) continue;
                b->entry[k] = NULL;
                tables_forget(b->pc);
                for (struct exit *x = b->incoming, *next; x; x = next) {
                    next = x->next_in;
                    if (x->kind == k) unlink_exit(x);
                }
            }
        }
    }
    forget_sites(r, the_map);
}

static void region_retire(struct region *r) {
    for (struct block *b = r->blocks; b; b = b->next_in_region) cache_invalidate(b);
    forget_strays(r);
    r->retired = true;
    r->retired_epoch = __atomic_add_fetch(&epoch, 1, __ATOMIC_SEQ_CST);
    cache_stats.evictions++;
}

/* A new segment in the low window; evicts the oldest one when there are too many. */
static struct region *low_segment(void) {
    struct region *oldest = NULL;
    int live = 0;
    for (struct region *r = regions; r; r = r->next)
        if (!r->retired && in_low_window(r)) {
            live++;
            oldest = r;
        }
    if (live >= SEGMENT_CAP) region_retire(oldest);
    reclaim_retired();
    static uint64_t next_slot;
    for (uint64_t i = 0; i < SEGMENT_SLOTS; i++) {
        uint64_t base = LAYOUT_CACHE + (next_slot++ % SEGMENT_SLOTS) * SEGMENT_SIZE;
        struct region *r = region_make(base, SEGMENT_SIZE, false);
        if (r) return r;
    }
    return NULL;
}

/* Windows that serve the same code are in reach of each other, too. */
#define REACH 0x38000000ll

static bool reaches(const struct region *r, gaddr pc) {
    int64_t d = (int64_t)(pc - (uint64_t)r->base);
    return d > -REACH && d < REACH;
}

static struct region *window_at(gaddr at) {
    if (!engine_host.claim(at, SEGMENT_SIZE)) return NULL;
    struct region *r = region_make(at, SEGMENT_SIZE, false);
    if (!r) engine_host.unclaim(at, SEGMENT_SIZE);
    return r;
}

/* Code far from the low window: a window of its own near by, wherever the address space has a hole. */
static struct region *far_region(gaddr pc) {
    for (struct region *r = regions; r; r = r->next)
        if (!r->retired && !r->is_kept && !in_low_window(r) && reaches(r, pc) && region_has_room(r)) return r;
    for (uint64_t step = 0; step < REACH - 0x8000000; step += 0x2000000) {
        gaddr above = (pc & ~0x1ffffffull) + 0x4000000 + step, below = (pc & ~0x1ffffffull) - 0x4000000 - step;
        struct region *r = NULL;
        r = window_at(above);
        if (!r && below < pc) r = window_at(below);
        if (r) return r;
    }
    return NULL;
}

struct region *cache_region_for(gaddr pc) {
    struct region *kept = cache_kept_region(pc);
    if (kept && pc >= kept->kept.file.text_start && pc < kept->kept.file.text_end && region_has_room(kept)) return kept;
    if (pc >= 0x80000000ul) {
        struct region *r = far_region(pc);
        if (r) return r;
    }
    if (!current || current->retired || !region_has_room(current)) current = low_segment();
    return current;
}

void *cache_meta(struct region *r, size_t bytes) {
    bytes = (bytes + 7) & ~7ull;
    if ((size_t)(r->meta_next - r->code_next) < bytes) return NULL;
    r->meta_next -= bytes;
    return r->meta_next;
}

/* ---- blocks ---- */

static bool link_of_page(const struct block *b, gaddr page) { return PAGE_DOWN(b->pc) != page; }

static struct block *first_on_page(struct region *r, gaddr page) {
    return (struct block *)map_get(r ? r->map : the_map, key_of(page, KEY_PAGE));
}

static void page_add(struct block *b, gaddr page) {
    struct region *r = kept_of(b);
    b->next_on_page[link_of_page(b, page)] = first_on_page(r, page);
    record(r, page, KEY_PAGE, (uint64_t)b);
}

static void page_remove(struct block *b, gaddr page) {
    struct region *r = kept_of(b);
    struct block *at = first_on_page(r, page);
    if (at == b) {
        record(r, page, KEY_PAGE, (uint64_t)b->next_on_page[link_of_page(b, page)]);
        return;
    }
    while (at) {
        struct block **next = &at->next_on_page[link_of_page(at, page)];
        if (*next == b) {
            *next = b->next_on_page[link_of_page(b, page)];
            return;
        }
        at = *next;
    }
}

void cache_commit(struct region *r, struct block *b, uint8_t *code_end) {
    r->code_next = code_end;
    b->is_kept = r->is_kept;
    for (uint64_t g = (uint64_t)(b->host - r->base) / GRANULE; g <= (uint64_t)(b->host + b->host_len - r->base) / GRANULE; g++)
        r->granules[g] = (uint32_t)((uint8_t *)b - r->base);
    b->next_in_region = r->blocks;
    r->blocks = b;
    r->n_blocks++;
    page_add(b, PAGE_DOWN(b->pc));
    if (PAGE_DOWN(b->end - 1) != PAGE_DOWN(b->pc)) page_add(b, PAGE_DOWN(b->end - 1));
    record(kept_of(b), b->pc, KEY_BLOCK, (uint64_t)b);
    cache_stats.blocks++;
    cache_stats.insns += b->n_insns;
    cache_stats.code_bytes += b->host_len;
}

bool cache_contains(uint64_t host_pc) {
    for (struct region *r = __atomic_load_n(&regions, __ATOMIC_ACQUIRE); r; r = r->next)
        if (host_pc >= (uint64_t)r->base && host_pc < (uint64_t)r->end) return true;
    return false;
}

struct block *cache_block_at(uint64_t host_pc) {
    for (struct region *r = __atomic_load_n(&regions, __ATOMIC_ACQUIRE); r; r = r->next) {
        if (host_pc < (uint64_t)r->base || host_pc >= (uint64_t)r->end) continue;
        uint32_t off = r->granules[(host_pc - (uint64_t)r->base) / GRANULE];
        struct block *b = off ? (struct block *)(r->base + off) : NULL;
        while (b && host_pc < (uint64_t)b->host) b = b->next_in_region;
        return b && host_pc < (uint64_t)b->host + b->host_len ? b : NULL;
    }
    return NULL;
}

void cache_link(struct exit *x, struct block *to, uint8_t *entry) {
    if (x->to || x->from->dead || to->dead) return;
    int64_t d = entry - (x->rel32 + 4);
    if (d != (int32_t)d) return;
    x->to = to;
    x->next_in = to->incoming;
    to->incoming = x;
    emit_set_rel32(x->rel32, entry);
}

static void unlink_exit(struct exit *x) {
    if (!x->to) return;
    for (struct exit **p = &x->to->incoming; *p; p = &(*p)->next_in)
        if (*p == x) {
            *p = x->next_in;
            break;
        }
    x->to = NULL;
    emit_set_rel32(x->rel32, x->stub_code);
}

void cache_table_set(uint64_t table, gaddr pc, const void *host) {
    uint64_t *slot = (uint64_t *)table + (pc & 0xffff);
    __atomic_store_n(slot, (uint64_t)host, __ATOMIC_RELEASE);
}

static void tables_forget(gaddr pc) {
    static const uint64_t table[] = {TABLE_RET, TABLE_JMP, TABLE_CALL};
    static const uint64_t stub[] = {STUB_RET, STUB_JMP, STUB_CALL};
    for (int i = 0; i < 3; i++) cache_table_set(table[i], pc, (void *)stub[i]);
}

void cache_invalidate(struct block *b) {
    if (b->dead) return;
    b->dead = true;
    struct region *r = kept_of(b);
    if (r) r->tainted = true;
    if (cache_find(b->pc) == b) record(r, b->pc, KEY_BLOCK, 0);
    tables_forget(b->pc);
    for (int i = 0; i < b->n_insns; i++) {
        gaddr pc = b->pc + b->map[i].guest_off;
        gaddr next = i + 1 < b->n_insns ? b->pc + b->map[i + 1].guest_off : b->end;
        if (cache_find_call(pc) == b) {
            record(r, pc, KEY_CALL, 0);
            record(r, next, KEY_SITE, 0);
        }
        tables_forget(next);
    }
    while (b->incoming) unlink_exit(b->incoming);
    for (int i = 0; i < b->n_exits; i++) unlink_exit(&b->exits[i]);
    page_remove(b, PAGE_DOWN(b->pc));
    if (PAGE_DOWN(b->end - 1) != PAGE_DOWN(b->pc)) page_remove(b, PAGE_DOWN(b->end - 1));
    cache_stats.invalidated++;
}

static size_t invalidate_list(struct block *b, gaddr page, gaddr lo, gaddr hi) {
    size_t n = 0;
    for (struct block *next; b; b = next) {
        next = b->next_on_page[link_of_page(b, page)];
        if (b->pc >= hi || b->end <= lo) continue;
        cache_invalidate(b);
        n++;
    }
    return n;
}

/* The mapping of a whole file goes away: its kept region with it. */
static void drop_kept_in(gaddr lo, gaddr hi) {
    for (struct region *r = regions; r; r = r->next) {
        if (!r->is_kept || r->retired || r->kept.file.text_start < lo || r->kept.file.text_end > hi) continue;
        cache_set_kept_region(r->kept.file.base, r->kept.file.span, NULL);
        region_retire(r);
    }
}

size_t cache_invalidate_range(gaddr lo, gaddr hi) {
    size_t n = 0;
    drop_kept_in(lo, hi);
    if (hi - lo > 256ul * PAGE_SIZE) { /* cheaper to look at every block */
        for (struct region *r = regions; r; r = r->next)
            for (struct block *b = r->blocks; b; b = b->next_in_region)
                if (!b->dead && b->pc < hi && b->end > lo) {
                    cache_invalidate(b);
                    n++;
                }
        return n;
    }
    for (gaddr page = PAGE_DOWN(lo); page < hi; page += PAGE_SIZE) {
        struct region *kept = cache_kept_region(page);
        if (kept) n += invalidate_list(first_on_page(kept, page), page, lo, hi);
        n += invalidate_list(first_on_page(NULL, page), page, lo, hi);
    }
    return n;
}

void cache_safepoint(struct tblock *t) { t->epoch = __atomic_load_n(&epoch, __ATOMIC_RELAXED); }

void cache_start(void) {
    the_map = arena_pages(map_bytes(1 << 10));
    map_init(the_map, 1 << 10);
}

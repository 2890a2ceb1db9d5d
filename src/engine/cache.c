#include "engine/cache.h"

#include <linux/mman.h>

#include "engine/engine.h"
#include "engine/hints.h"
#include "engine/preset.h"
#include "engine/spans.h"
#include "engine/tables.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/lock.h"
#include "inproc/str.h"
#include "inproc/sys.h"

#define SEGMENT_SIZE (4ul << 20)
#define SEGMENT_LEAST (64ul << 10)
#define SEGMENT_CAP 8    /* live segments of low code before the oldest is evicted */
#define FAR_CAP 32       /* the same of far code: programs too large for the library area, and what they compile */
#define SLOTS_PER_LIVE 4 /* for each of them: places in the low window, most of which wait to be let go of */
#define OPEN_STEP (128ul << 10) /* regions become accessible by so much at a time */
#define BLOCK_ROOM (48 * 1024)  /* the most that one block with its records can take */
#define KEPT_SLOT_SHIFT 18
#define KEPT_MAP_START 1024 /* entries of a fresh kept region's map */
#define KICK_PATIENCE 1000  /* looks for a kick that does not come, until the next one at who sends it */
#define MAP_PER_BLOCK 32    /* the most map entries that one block can take */

struct lock cache_lock;
struct cache_stats cache_stats;

static struct region *regions; /* all, newest first */
static struct region *current; /* where low code goes now */
static uint64_t segment_size = SEGMENT_SIZE;
static bool checks_itself; /* a tiny cache is for testing: verify what eviction leaves behind */
static uint64_t epoch = 1;
static bool full;           /* the last request for room failed */
static bool backlog;        /* evicted regions pile up, because threads do not let go of them */
static struct map *the_map; /* of everything that no kept region holds */
static struct region *kept_slots[(LAYOUT_FILES_END - LAYOUT_LIB_BASE) >> KEPT_SLOT_SHIFT];
static struct region *kept_low;

_Static_assert((LAYOUT_CACHE_END - LAYOUT_CACHE) / SEGMENT_SIZE == SEGMENT_CAP * SLOTS_PER_LIVE, "the low window");

struct region *region_first(void) {
    return regions;
}
bool region_holds(const struct region *r, const void *p) {
    return (const uint8_t *)p >= r->base && (const uint8_t *)p < r->end;
}

struct region *cache_kept_region(gaddr pc) {
    if (pc - LAYOUT_LIB_BASE < LAYOUT_FILES_END - LAYOUT_LIB_BASE)
        return __atomic_load_n(&kept_slots[(pc - LAYOUT_LIB_BASE) >> KEPT_SLOT_SHIFT], __ATOMIC_ACQUIRE);
    return pc < LAYOUT_LIB_BASE ? __atomic_load_n(&kept_low, __ATOMIC_ACQUIRE) : NULL;
}

void cache_set_kept_region(gaddr base, size_t span, struct region *r) {
    hints_add_code(base, base + span);
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

/* Maps that were outgrown: readers may still be in them. */
static struct {
    struct map *map;
    size_t bytes;
    uint64_t epoch;
} old_maps[64];
static size_t n_old_maps;

static void leave_map(struct map *m) {
    if (n_old_maps == ARRAY_LEN(old_maps)) return; /* nobody lets go: it stays for good */
    old_maps[n_old_maps].map = m;
    old_maps[n_old_maps].bytes = map_bytes(m->mask + 1);
    old_maps[n_old_maps++].epoch = __atomic_add_fetch(&epoch, 1, __ATOMIC_SEQ_CST);
}

static struct map *grown_copy(struct region *r, const struct map *old) {
    uint64_t entries = map_grown(old);
    struct map *m = r ? cache_meta(r, map_bytes(entries)) : arena_pages(map_bytes(entries));
    if (!m) return NULL;
    if (r) memset(m, 0, map_bytes(entries));
    map_init(m, entries);
    map_copy(m, old);
    return m;
}

/* r: the kept region whose map it goes into; NULL: the common one. False: the kept region has no room for a larger map. */
static bool record(struct region *r, gaddr a, enum key_kind kind, uint64_t value) {
    struct map **m = r ? &r->map : &the_map;
    if (map_put(*m, key_of(a, kind), value)) return true;
    struct map *old = *m, *larger = grown_copy(r, old);
    if (!larger) return false;
    __atomic_store_n(m, larger, __ATOMIC_RELEASE);
    if (!r) leave_map(old); /* a kept region's stays where it is */
    return map_put(*m, key_of(a, kind), value);
}

static struct region *kept_of(const struct block *b) { return b->is_kept ? cache_kept_region(b->pc) : NULL; }

struct block *cache_find(gaddr pc) {
    const struct region *r = cache_kept_region(pc);
    if (!hints_may_be_block(pc) && !(r && r->is_loaded)) return NULL;
    return (struct block *)lookup(pc, KEY_BLOCK);
}

/* A site's two addresses in one word: the sequence is shorter than 256 bytes. */
static struct site site_of(uint64_t v) {
    uint8_t *host = (uint8_t *)(v & ((1ull << 56) - 1));
    return (struct site){host, host + (v >> 56)};
}

struct site cache_find_site(gaddr pc) {
    return site_of(lookup(pc, KEY_SITE));
}

static gaddr address_of(uint64_t key) { return (key & ((1ull << 62) - 1)) - 1; }

void cache_each_site(const struct region *r, void (*each)(void *, gaddr, struct site), void *arg) {
    for (uint64_t i = 0; i <= r->map->mask; i++) {
        const struct map_slot *s = &r->map->slots[i];
        if (s->key >> 62 == KEY_SITE && s->value) each(arg, address_of(s->key), site_of(s->value));
    }
}

/* A kept region takes only what lies in itself. */
static struct region *kept_home(gaddr pc, const void *thing) {
    struct region *r = cache_kept_region(pc);
    return r && region_holds(r, thing) ? r : NULL;
}

void cache_add_site(gaddr pc, struct site s) {
    if (cache_find_site(pc).host) tables_forget_returns(pc); /* no way to one that is found no more */
    record(kept_home(pc, s.host), pc, KEY_SITE, (uint64_t)s.host | (uint64_t)(s.cont - s.host) << 56);
}

struct block *cache_find_call(gaddr pc) {
    return (struct block *)lookup(pc, KEY_CALL);
}

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

bool region_list_add(struct region *r) {
    if (!span_add((uint64_t)r->base, (uint64_t)r->end)) return false;
    r->next = regions;
    regions = r;
    return true;
}

/* Makes [from, to) accessible. */
static bool open_up(uint8_t *from, uint8_t *to) {
    return from >= to || SYS(mprotect, from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
}

static bool open_code(struct region *r, uint8_t *upto) {
    if (likely(upto <= r->code_open)) return true;
    uint8_t *to =
        MIN(r->code_open + (((size_t)(upto - r->code_open) + OPEN_STEP - 1) & ~(OPEN_STEP - 1)), r->meta_open);
    if (!open_up(r->code_open, to)) return false;
    r->code_open = to;
    return true;
}

static bool open_meta(struct region *r, uint8_t *downto) {
    if (likely(downto >= r->meta_open)) return true;
    size_t more = ((size_t)(r->meta_open - downto) + OPEN_STEP - 1) & ~(OPEN_STEP - 1);
    uint8_t *to = more < (size_t)(r->meta_open - r->code_open) ? r->meta_open - more : r->code_open;
    if (!open_up(to, r->meta_open)) return false;
    r->meta_open = to;
    return true;
}

uint8_t *cache_code_end(const struct region *r) { return r->code_open < r->meta_open ? r->code_open : r->meta_next; }

struct region *region_make(uint64_t base, size_t size, bool is_kept) {
    long got =
        SYS(mmap, base, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
    if (got != (long)base) return NULL;
    struct region *r = (struct region *)base;
    size_t first = MIN(OPEN_STEP, size);
    if (!open_up((uint8_t *)base, (uint8_t *)base + first)) {
        SYS(munmap, base, size);
        return NULL;
    }
    r->base = (uint8_t *)base;
    r->end = r->base + size;
    r->code_open = r->base + first;
    r->meta_open = r->end;
    r->code_next = r->base + ((sizeof *r + 63) & ~63ull);
    r->meta_next = r->end;
    r->granules = cache_meta(r, size / GRANULE * sizeof *r->granules);
    r->is_kept = is_kept;
    r->map = is_kept ? cache_meta(r, map_bytes(KEPT_MAP_START)) : NULL;
    if (!r->granules || (is_kept && !r->map)) {
        SYS(munmap, base, size);
        return NULL;
    }
    if (is_kept) map_init(r->map, KEPT_MAP_START);
    struct emitter e = {.p = r->code_next, .end = r->code_open};
    r->tramp_exit = make_trampoline(&e, r, TB_FN_EXIT);
    r->tramp_ret_fail = make_trampoline(&e, r, TB_FN_RET_MISS);
    r->tramp_jmp_fail = make_trampoline(&e, r, TB_FN_JMP_MISS);
    r->tramp_call_fail = make_trampoline(&e, r, TB_FN_CALL_FAIL);
    r->code_next = e.p;
    if (region_list_add(r)) return r;
    SYS(munmap, base, size);
    return NULL;
}

/* A kept region must have room for a larger map, too, before its own is full. Opens what a block may take. */
static bool region_has_room(struct region *r) {
    size_t need = BLOCK_ROOM;
    if (r->is_kept && (r->map->used + MAP_PER_BLOCK) * 4 >= r->map->mask * 3) need += map_bytes((r->map->mask + 1) * 2);
    return (size_t)(r->meta_next - r->code_next) >= need && open_code(r, r->code_next + BLOCK_ROOM);
}

static void unlink_exit(struct exit *x);

static bool in_low_window(const struct region *r) {
    return (uint64_t)r->base >= LAYOUT_CACHE && (uint64_t)r->base < LAYOUT_CACHE_END;
}

static bool is_far(const struct region *r) { return !r->is_kept && !in_low_window(r); }

static void region_unmap(struct region *r) {
    for (struct region **p = &regions; *p; p = &(*p)->next)
        if (*p == r) {
            *p = r->next;
            break;
        }
    gaddr base = (gaddr)r->base;
    size_t size = (size_t)(r->end - r->base);
    bool far = is_far(r);
    span_remove(base);
    SYS(munmap, base, size);
    if (far) engine_host.unclaim(base, size);
}

/* Who kicks may be killed before the kick is sent, if it is another process. */
void cache_await_kick(struct tblock *t) {
    uint32_t who;
    for (int i = 1; (who = __atomic_load_n(&t->kick, __ATOMIC_ACQUIRE)) != 0; i++) {
        SYS(sched_yield);
        if (i % KICK_PATIENCE || who == t->pid || !lock_is_dead || !lock_is_dead(who)) continue;
        __atomic_compare_exchange_n(&t->kick, &who, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
}

void cache_reclaim(void) {
    uint64_t oldest = engine_host.oldest_epoch();
    int waiting = 0;
    for (struct region *r = regions, *next; r; r = next) {
        next = r->next;
        if (!r->retired) continue;
        if (r->retired_epoch <= oldest)
            region_unmap(r);
        else
            waiting++;
    }
    backlog = waiting >= SEGMENT_CAP;
    for (size_t i = 0; i < n_old_maps;) {
        if (old_maps[i].epoch > oldest) {
            i++;
            continue;
        }
        arena_free_pages(old_maps[i].map, old_maps[i].bytes);
        old_maps[i] = old_maps[--n_old_maps];
    }
}

static void region_retire(struct region *r);

/* Kept regions of libraries are where they are for no reason but that there was room. */
static bool can_be_elsewhere(const struct region *r) {
    return is_far(r) || (r->is_kept && (uint64_t)r->base >= LAYOUT_KEPT_BASE && (uint64_t)r->base < LAYOUT_KEPT_END);
}

void cache_make_way(gaddr lo, gaddr hi) {
    bool any = false;
    for (struct region *r = regions; r; r = r->next) {
        if (!can_be_elsewhere(r) || (uint64_t)r->base >= hi || (uint64_t)r->end <= lo) continue;
        if (!r->retired && r->is_kept) cache_set_kept_region(r->kept.file.base, r->kept.file.span, NULL);
        if (!r->retired) region_retire(r);
        any = true;
    }
    if (any) cache_reclaim();
}

static void forget_sites(const struct region *r, struct map *m) {
    for (uint64_t i = 0; i <= m->mask; i++) {
        struct map_slot *s = &m->slots[i];
        if (s->key >> 62 != KEY_SITE || !region_holds(r, site_of(s->value).host)) continue;
        s->value = 0;
        tables_forget(address_of(s->key));
    }
}

static struct block *first_on_page(struct region *r, gaddr page);
static struct block *next_on(const struct block *b, gaddr page);

void cache_note_stray(struct region *r, struct stray *s, gaddr pc) {
    *s = (struct stray){r->strays, pc};
    r->strays = s;
}

static void forget_entries(const struct region *r, struct block *b) {
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

/* Entries and return landings that were made in r for blocks that live elsewhere. */
static void forget_strays(struct region *r) {
    for (const struct stray *s = r->strays; s; s = s->next) {
        gaddr page = PAGE_DOWN(s->pc);
        struct region *kept = cache_kept_region(s->pc);
        for (struct block *b = first_on_page(NULL, page); b; b = next_on(b, page))
            if (b->pc == s->pc) forget_entries(r, b);
        for (struct block *b = kept ? first_on_page(kept, page) : NULL; b; b = next_on(b, page))
            if (b->pc == s->pc) forget_entries(r, b);
    }
    forget_sites(r, the_map);
}

/* Nothing that is found may lead into r any more. */
static void check_forgotten(const struct region *r) {
    for (const uint64_t *slot = (uint64_t *)LAYOUT_TABLES; slot < (uint64_t *)(LAYOUT_TABLES + TABLES_SIZE); slot++)
        CHECK(!region_holds(r, (void *)*slot));
    for (uint64_t i = 0; i <= the_map->mask; i++)
        CHECK(!region_holds(r, (void *)(the_map->slots[i].value & ((1ull << 56) - 1))));
    for (const struct region *o = regions; o; o = o->next)
        for (const struct block *b = o->blocks; o != r && b; b = b->next_in_region)
            for (int i = 0; i < b->n_exits; i++) CHECK(!region_holds(r, emit_get_rel32(b->exits[i].rel32)));
}

static void region_retire(struct region *r) {
    /* Ways in first: taking them from the head of each list, nobody has to look for those that lead from one block here to another. */
    for (struct block *b = r->blocks; b; b = b->next_in_region)
        while (b->incoming) unlink_exit(b->incoming);
    for (struct block *b = r->blocks; b; b = b->next_in_region) cache_invalidate(b);
    forget_strays(r);
    r->presets = NULL;
    r->retired = true;
    r->retired_epoch = __atomic_add_fetch(&epoch, 1, __ATOMIC_SEQ_CST);
    cache_stats.evictions++;
    if (unlikely(checks_itself)) check_forgotten(r);
}

static bool is_full(const struct region *r) { return (size_t)(r->meta_next - r->code_next) < BLOCK_ROOM; }

/* The better one to evict, where b is the older one: the one with fewer blocks that anybody can reach. */
static struct region *less_use(struct region *a, struct region *b) {
    if (!a || !is_full(a)) return b;
    return is_full(b) && a->n_blocks - a->n_dead < b->n_blocks - b->n_dead ? a : b;
}

/* Makes way for one more segment of low or far code: evicts one when there are too many. */
static void evict_if_many(bool far) {
    struct region *least = NULL;
    int live = 0;
    for (struct region *r = regions; r; r = r->next)
        if (!r->retired && (far ? is_far(r) : in_low_window(r))) {
            live++;
            least = less_use(least, r);
        }
    if (live >= (far ? FAR_CAP : SEGMENT_CAP)) region_retire(least);
    cache_reclaim();
}

/* The kernel gives no memory, or evicted regions hold all there is. The next attempt finds less in the way, or we give up. */
static void out_of_memory(void) {
    struct region *oldest = NULL;
    for (struct region *r = regions; r; r = r->next) {
        if (r->retired) return;
        if (!r->is_kept) oldest = r;
    }
    if (oldest)
        region_retire(oldest);
    else if (segment_size > SEGMENT_LEAST)
        segment_size = SEGMENT_LEAST;
    else
        die("no memory for the code cache%s",
            SYS(prctl, 66 /* PR_GET_MDWE */, 0, 0, 0, 0) > 0 ? ": writing code is forbidden here (PR_SET_MDWE)" : "");
}

static struct region *low_segment(void) {
    static uint64_t next_slot;
    evict_if_many(false);
    for (uint64_t i = 0; i < SEGMENT_CAP * SLOTS_PER_LIVE; i++) {
        uint64_t base = LAYOUT_CACHE + (next_slot++ % (SEGMENT_CAP * SLOTS_PER_LIVE)) * segment_size;
        struct region *r = region_make(base, segment_size, false);
        if (r) return r;
    }
    out_of_memory();
    return NULL;
}

/* Windows that serve the same code are in reach of each other, too. */
#define REACH 0x38000000ll

static bool reaches(const struct region *r, gaddr pc) {
    int64_t d = (int64_t)(pc - (uint64_t)r->base);
    return d > -REACH && d < REACH;
}

static struct region *window_at(gaddr at) {
    if (!engine_host.claim(at, segment_size)) return NULL;
    struct region *r = region_make(at, segment_size, false);
    if (!r) engine_host.unclaim(at, segment_size);
    return r;
}

/* Places for windows of far code, below and above it: apart from each other first, and then, for programs that compile much
 * beside much memory (java), between those. */
#define WINDOWS_APART 0x2000000l
#define SEARCH_EVERY 64

/* As far away as may be, below first: programs that place memory themselves (valgrind) go on right behind what they have. */
static struct region *free_window(gaddr pc) {
    gaddr here = pc & ~(WINDOWS_APART - 1);
    for (int64_t within = 0; within < WINDOWS_APART; within += SEGMENT_SIZE)
        for (int64_t away = REACH - 2 * WINDOWS_APART; away >= 2 * WINDOWS_APART; away -= WINDOWS_APART) {
            gaddr below = here - (uint64_t)(away - within), above = here + (uint64_t)(away + within);
            struct region *r = below < pc ? window_at(below) : NULL;
            if (!r) r = window_at(above);
            if (r) return r;
        }
    return NULL;
}

/* Code far from the low window: a window of its own near by, wherever the address space has a hole. */
static struct region *far_region(gaddr pc) {
    for (struct region *r = regions; r; r = r->next)
        if (!r->retired && is_far(r) && reaches(r, pc) && region_has_room(r)) return r;
    evict_if_many(true);
    if (backlog) return NULL;
    static uint32_t fruitless; /* a search that finds nothing is long: not for each block */
    if (fruitless) return fruitless--, NULL;
    struct region *r = free_window(pc);
    if (!r) fruitless = SEARCH_EVERY;
    return r;
}

struct region *cache_region_for(gaddr pc) {
    struct region *kept = cache_kept_region(pc);
    if (kept && pc >= kept->kept.file.text_start && pc < kept->kept.file.text_end && region_has_room(kept)) return kept;
    return cache_region_apart(pc);
}

struct region *cache_region_apart(gaddr pc) {
    struct region *r = pc >= 0x80000000ul ? far_region(pc) : NULL;
    full = !r && pc >= 0x80000000ul && backlog;
    if (r || full) return r;
    if (!current || current->retired || !region_has_room(current)) current = low_segment();
    full = !current;
    return current;
}

bool cache_is_full(void) {
    bool was = full;
    full = false;
    return was;
}

void cache_hurry(void) {
    if (backlog) engine_host.hurry(__atomic_load_n(&epoch, __ATOMIC_SEQ_CST));
}

#define FIRST_NAP_NS 20000
#define LONGEST_NAP_NS 5000000

void cache_wait_for_room(struct tblock *t) {
    cache_idle(t);
    uint64_t want = __atomic_load_n(&epoch, __ATOMIC_SEQ_CST);
    int64_t nap[2] = {0, FIRST_NAP_NS};
    while (engine_host.oldest_epoch() < want) {
        engine_host.hurry(want);
        SYS(nanosleep, nap, 0);
        nap[1] = MIN(nap[1] * 2, LONGEST_NAP_NS);
    }
    lock_take(&cache_lock);
    cache_reclaim();
    lock_drop(&cache_lock);
}

void *cache_meta(struct region *r, size_t bytes) {
    bytes = (bytes + 7) & ~7ull;
    if ((size_t)(r->meta_next - r->code_next) < bytes || !open_meta(r, r->meta_next - bytes)) return NULL;
    r->meta_next -= bytes;
    return r->meta_next;
}

/* ---- blocks ---- */

static bool link_of_page(const struct block *b, gaddr page) { return PAGE_DOWN(b->pc) != page; }

static struct block *first_on_page(struct region *r, gaddr page) {
    return (struct block *)map_get(r ? r->map : the_map, key_of(page, KEY_PAGE));
}

static struct block *next_on(const struct block *b, gaddr page) { return b->next_on_page[link_of_page(b, page)]; }

static void page_add(struct block *b, gaddr page) {
    struct region *r = kept_of(b);
    b->next_on_page[link_of_page(b, page)] = first_on_page(r, page);
    record(r, page, KEY_PAGE, (uint64_t)b);
}

static void page_remove(struct block *b, gaddr page) {
    struct region *r = kept_of(b);
    struct block *at = first_on_page(r, page);
    if (at == b) {
        record(r, page, KEY_PAGE, (uint64_t)next_on(b, page));
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

static struct block *find_on_page(struct block *b, gaddr page, gaddr pc) {
    for (; b; b = next_on(b, page))
        if (b->pc < pc && pc < b->end && !b->checked && cache_insn_host(b, pc)) return b;
    return NULL;
}

struct block *cache_find_around(gaddr pc) {
    gaddr page = PAGE_DOWN(pc);
    struct region *kept = cache_kept_region(pc);
    /* if there is a kept one, too: a few that have breakpoints */
    struct block *b = find_on_page(first_on_page(NULL, page), page, pc);
    return b || !kept ? b : find_on_page(first_on_page(kept, page), page, pc);
}

void cache_commit(struct region *r, struct block *b, uint8_t *code_end) {
    r->code_next = code_end;
    b->is_kept = r->is_kept;
    b->next_in_region = r->blocks;
    for (uint64_t g =
             (uint64_t)(b->host - r->base) / GRANULE; /* others look there at once, for blocks beside this one */
         g <= (uint64_t)(b->host + b->host_len - r->base) / GRANULE; g++)
        __atomic_store_n(&r->granules[g], (uint32_t)((uint8_t *)b - r->base), __ATOMIC_RELEASE);
    r->blocks = b;
    r->n_blocks++;
    page_add(b, PAGE_DOWN(b->pc));
    if (PAGE_DOWN(b->end - 1) != PAGE_DOWN(b->pc)) page_add(b, PAGE_DOWN(b->end - 1));
    hints_add_block(b->pc);
    record(kept_of(b), b->pc, KEY_BLOCK, (uint64_t)b);
    cache_stats.blocks++;
    cache_stats.insns += b->n_insns;
    cache_stats.code_bytes += b->host_len;
}

bool cache_contains(uint64_t host_pc) { return span_region_at(host_pc) != NULL; }

struct block *cache_block_at(uint64_t host_pc) {
    struct region *r = span_region_at(host_pc);
    if (!r) return NULL;
    uint32_t off = r->granules[(host_pc - (uint64_t)r->base) / GRANULE];
    struct block *b = off ? (struct block *)(r->base + off) : NULL;
    while (b && host_pc < (uint64_t)b->host) b = b->next_in_region;
    return b && host_pc < (uint64_t)b->host + b->host_len ? b : NULL;
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
    __atomic_store_n(table_slot(table, pc), (uint64_t)host, __ATOMIC_RELEASE);
}

/* The landing of returns to pc, if it is in block b or leads to it: those outside of any block were made for the block at pc. */
static void forget_site(const struct block *b, gaddr pc) {
    uint8_t *host = cache_find_site(pc).host;
    if (!host) return;
    bool inside = host >= b->host && host < b->host + b->host_len;
    if (inside || (pc == b->pc && !cache_block_at((uint64_t)host))) record(kept_home(pc, host), pc, KEY_SITE, 0);
}

/* A call that returns come back to: few instructions are, and looking for what the others do not have takes long. */
static bool has_site(const struct insn_map *m) {
    uint8_t spill = m->spill & (uint8_t)~SPILL_TICKED;
    return spill == SPILL_CALL || spill == SPILL_CALL_IND;
}

static void forget_ways(struct region *kept, gaddr pc) {
    tables_forget(pc);
    if (kept && kept->presets) preset_forget(kept, pc);
}

static void take_out(struct block *b) {
    if (b->dead) return;
    b->dead = true;
    struct region *home = span_region_at((uint64_t)b), *r = kept_of(b);
    if (home) home->n_dead++;
    if (cache_find(b->pc) == b) record(r, b->pc, KEY_BLOCK, 0);
    forget_site(b, b->pc);
    forget_ways(r, b->pc);
    for (int i = 0; i < b->n_insns; i++) {
        gaddr pc = b->pc + b->map[i].guest_off;
        if (!has_site(&b->map[i])) continue;
        gaddr next = i + 1 < b->n_insns ? b->pc + b->map[i + 1].guest_off : b->end;
        if (cache_find_call(pc) == b) record(r, pc, KEY_CALL, 0);
        forget_site(b, next);
        forget_ways(r, next);
    }
    while (b->incoming) unlink_exit(b->incoming);
    for (int i = 0; i < b->n_exits; i++) unlink_exit(&b->exits[i]);
    page_remove(b, PAGE_DOWN(b->pc));
    if (PAGE_DOWN(b->end - 1) != PAGE_DOWN(b->pc)) page_remove(b, PAGE_DOWN(b->end - 1));
    __atomic_store_n(&cache_stats.invalidated, cache_stats.invalidated + 1,
                     __ATOMIC_RELEASE); /* all see it: dispatch.c */
}

void cache_invalidate(struct block *b) {
    struct region *r = kept_of(b);
    if (r) {
        r->tainted = true;
        r->presets = NULL;
    }
    take_out(b);
}

static size_t each_in_list(struct block *b, gaddr page, gaddr lo, gaddr hi, void (*take)(struct block *)) {
    size_t n = 0;
    for (struct block *next; b; b = next) {
        next = next_on(b, page);
        if (b->pc >= hi || b->end <= lo) continue;
        take(b);
        n++;
    }
    return n;
}

/* The mapping of a whole file goes away: its kept region with it. Where a part changes, what is translated from now on may be
 * something else than the file's. */
static void drop_kept_in(gaddr lo, gaddr hi) {
    for (struct region *r = regions; r; r = r->next) {
        if (!r->is_kept || r->retired || r->kept.file.text_start >= hi || r->kept.file.text_end <= lo) continue;
        r->tainted = r->changed = true;
        if (r->kept.file.text_start < lo || r->kept.file.text_end > hi) continue;
        cache_set_kept_region(r->kept.file.base, r->kept.file.span, NULL);
        region_retire(r);
    }
}

/* Blocks rely on more than their own bytes: on their pages, and if they are a file's on all of its code (flags_are_dead). */
static void widen(gaddr *lo, gaddr *hi) {
    gaddr start = *lo = PAGE_DOWN(*lo), end = *hi = PAGE_UP(*hi);
    for (struct region *r = regions; r; r = r->next) {
        const struct kept_file *f = &r->kept.file;
        if (!r->is_kept || r->retired || f->text_start >= end || f->text_end <= start) continue;
        *lo = MIN(*lo, f->text_start);
        *hi = MAX(*hi, f->text_end);
    }
}

size_t cache_invalidate_range(gaddr lo, gaddr hi) {
    size_t n = 0;
    gaddr changed_lo = lo, changed_hi = hi;
    if (!hints_may_be_code(lo, hi)) return 0;
    if (the_policy->ticks) widen(&lo, &hi);
    drop_kept_in(changed_lo, changed_hi);
    if (hi - lo > 256ul * PAGE_SIZE) { /* cheaper to look at every block */
        for (struct region *r = regions; r; r = r->next) {
            const struct kept_file *f = &r->kept.file;
            if (r->is_kept && (f->text_start >= hi || f->text_end <= lo)) continue;
            for (struct block *b = r->blocks; b; b = b->next_in_region)
                if (!b->dead && b->pc < hi && b->end > lo) {
                    cache_invalidate(b);
                    n++;
                }
        }
        return n;
    }
    for (gaddr page = PAGE_DOWN(lo); page < hi; page += PAGE_SIZE) {
        struct region *kept = cache_kept_region(page);
        if (kept) n += each_in_list(first_on_page(kept, page), page, lo, hi, cache_invalidate);
        n += each_in_list(first_on_page(NULL, page), page, lo, hi, cache_invalidate);
    }
    return n;
}

void cache_invalidate_at(gaddr pc) {
    gaddr page = PAGE_DOWN(pc);
    struct region *kept = cache_kept_region(pc);
    if (kept) each_in_list(first_on_page(kept, page), page, pc, pc + 1, take_out);
    each_in_list(first_on_page(NULL, page), page, pc, pc + 1, take_out);
}

void cache_safepoint(struct tblock *t) {
    uint64_t now = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
    if (t->epoch == EPOCH_IDLE)
        __atomic_store_n(&t->epoch, now,
                         __ATOMIC_SEQ_CST); /* whoever reclaims must see it before we look anything up */
    else
        __atomic_store_n(&t->epoch, now, __ATOMIC_RELEASE);
}

void cache_set_size(size_t bytes) {
    segment_size = MIN(MAX(bytes / SEGMENT_CAP, SEGMENT_LEAST), SEGMENT_SIZE) & PAGE_MASK;
    checks_itself = segment_size < SEGMENT_SIZE;
}

void cache_start(void) {
    the_map = arena_pages(map_bytes(1 << 10));
    map_init(the_map, 1 << 10);
}

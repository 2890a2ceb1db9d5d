#include "engine/kept_tables.h"

#include <linux/mman.h>

#include "engine/cache.h"
#include "engine/engine.h"
#include "engine/kept_dir.h"
#include "engine/kept_mark.h"
#include "engine/preset.h"
#include "engine/tables.h"
#include "inproc/arena.h"
#include "inproc/hash.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"

#define MAGIC 0x3174546573697265ull

struct head { /* behind the tables */
    uint64_t magic, build, policy;
    uint64_t regions; /* which ones the entries lead into */
    uint64_t checksum;
};
#define FILE_SIZE (TABLES_SIZE + PAGE_SIZE)

static bool takes_part(const struct region *r) {
    return r->is_kept && r->is_loaded && !r->retired && r->presets && !r->presets_grown;
}

/* What was looked for last, and not found: those are the regions that later processes will have at that moment, too. */
static uint64_t wanted;

/* Which regions take part; 0: none. */
static uint64_t choose_regions(void) {
    uint64_t sum = 0;
    for (struct region *r = region_first(); r; r = r->next) {
        const uint64_t is[] = {(uint64_t)r->base, r->kept.checksum};
        r->in_tables = takes_part(r);
        if (r->in_tables) sum += hash_bytes(is, sizeof is, 0);
    }
    return sum;
}

static void name_for(char name[KEPT_NAME], uint64_t regions) {
    const uint64_t is[] = {MAGIC, regions};
    kept_dir_name(name, hash_bytes(is, sizeof is, kept_dir_build() ^ the_policy->id << 1));
}

/* ---- using them ---- */

static bool read_head(int fd, const struct stat *st, uint64_t regions, struct head *h) {
    return st->st_size == FILE_SIZE && SYS(pread64, fd, h, sizeof *h, TABLES_SIZE) == sizeof *h && h->magic == MAGIC &&
           h->build == kept_dir_build() && h->policy == the_policy->id && h->regions == regions;
}

static bool is_whole(int fd, const struct stat *st, uint64_t sum, const void *tables) {
    if (kept_is_marked(st, sum)) return true;
    if (hash_bytes(tables, TABLES_SIZE, 0) != sum) return false;
    kept_mark(fd, st, sum);
    return true;
}

static bool put_in_place(int fd, const struct stat *st, uint64_t sum) {
    if (SYS(mmap, LAYOUT_TABLES_COPY, TABLES_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) !=
        (long)LAYOUT_TABLES_COPY)
        return false;
    if (is_whole(fd, st, sum, (void *)LAYOUT_TABLES_COPY) && tables_take_place()) return true;
    SYS(munmap, LAYOUT_TABLES_COPY, TABLES_SIZE);
    return false;
}

bool kept_tables_map(void) {
    uint64_t regions = wanted = kept_dir_is_there() ? choose_regions() : 0;
    if (!regions) return false;
    char name[KEPT_NAME];
    name_for(name, regions);
    struct stat st;
    long fd = kept_dir_open(name, &st);
    if (fd < 0) return false;
    struct head h;
    bool done = read_head((int)fd, &st, regions, &h) && put_in_place((int)fd, &st, h.checksum);
    if (!done) SYS(unlink, name); /* makes way for a new one */
    SYS(close, fd);
    for (struct region *r = region_first(); done && r; r = r->next)
        if (r->in_tables) memset(r->filled, 0xff, sizeof r->filled);
    return done;
}

/* ---- making them ---- */

static void write_for(const char *name, uint64_t regions) {
    uint64_t *tables = arena_try_pages(TABLES_SIZE);
    if (!tables) return;
    tables_clear(tables);
    for (const struct region *r = region_first(); r; r = r->next)
        if (r->in_tables) preset_write(r, tables);
    struct head h = {.magic = MAGIC, .build = kept_dir_build(), .policy = the_policy->id, .regions = regions};
    h.checksum = hash_bytes(tables, TABLES_SIZE, 0);
    uint8_t last[PAGE_SIZE] = {0};
    memcpy(last, &h, sizeof h);
    struct kept_writer w;
    if (kept_dir_begin(&w)) {
        kept_dir_put(&w, tables, TABLES_SIZE, 0);
        kept_dir_put(&w, last, sizeof last, TABLES_SIZE);
        kept_dir_end(&w, name, h.checksum);
    }
    arena_free_pages(tables, TABLES_SIZE);
}

/* Whether they are still what was looked for. */
static bool all_take_part(void) {
    for (const struct region *r = region_first(); r; r = r->next)
        if (r->in_tables && !takes_part(r)) return false;
    return true;
}

void kept_tables_save(void) {
    if (!wanted || !all_take_part() || !kept_dir_may_write(FILE_SIZE)) return;
    char name[KEPT_NAME];
    name_for(name, wanted);
    struct stat st;
    long fd = kept_dir_open(name, &st);
    if (fd >= 0) SYS(close, fd); /* somebody else was quicker */
    if (fd < 0 && kept_dir_has_room(FILE_SIZE)) {
        write_for(name, wanted);
        kept_dir_trim();
    }
    wanted = 0;
}

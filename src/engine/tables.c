#include "engine/tables.h"

#include <linux/mman.h>

#include "engine/engine.h"
#include "engine/kept_tables.h"
#include "engine/preset.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"

/* All pages for returns cost as much as so many misses. */
#define WORTH_ALL 1600
/* A file that has them (kept_tables.h) is looked for after so many, and written if they go on. */
#define WORTH_LOOKING 128
#define WORTH_KEEPING 400
#define RETURN_PAGES (HUGE_PAGE / PAGE_SIZE)

_Static_assert(LAYOUT_TABLES % HUGE_PAGE == 0 && LAYOUT_TABLES_COPY % HUGE_PAGE == 0, "huge pages");
_Static_assert(TABLE_RET(TABLES_RET) - TABLE_RET(0) == HUGE_PAGE, "one huge page for returns");
_Static_assert(LAYOUT_TABLES + TABLES_SIZE <= TABLE_STORES, "tables do not overlap");

extern const uint64_t tables_initial[]; /* tables.S */

int call_index_shift;

static uint8_t heat[TABLE_PAGES];
static uint32_t missed; /* in pages that were not worth it */
static uint32_t since;  /* in all pages, since there is another kept region */
static bool is_from_file;

bool tables_is_used(size_t page) { return is_from_file || heat[page] >= WORTH_A_PAGE; }

void tables_another_region(void) { since = 0; }

bool tables_worth_keeping(void) { return since >= WORTH_KEEPING; }

void tables_clear(uint64_t *tables) {
    for (size_t i = 0; i < TABLES_SIZE / 8; i++) tables[i] = table_stub(LAYOUT_TABLES + (i * 8 & -(8 * TABLE_ENTRIES)));
}

static bool take_place(size_t bytes) {
    return SYS(mremap, LAYOUT_TABLES_COPY, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, LAYOUT_TABLES) ==
           (long)LAYOUT_TABLES;
}

bool tables_take_place(void) { return take_place(TABLES_SIZE); }

static void map_fixed(uint64_t at, size_t len) {
    long got = SYS(mmap, at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (long)at)
        die("address %lx is taken (error %ld); is vm.overcommit_memory or an address limit in the way?", at, -got);
}

void tables_start(void) {
    /* moved out of the runtime's image, without the cost of filling them; or by hand */
    if (SYS(mremap, tables_initial, TABLES_SIZE, TABLES_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, LAYOUT_TABLES) ==
        (long)LAYOUT_TABLES) {
        if (SYS(mprotect, LAYOUT_TABLES, TABLES_SIZE, PROT_READ | PROT_WRITE) != 0)
            die("no memory for the lookup tables");
        return;
    }
    map_fixed(LAYOUT_TABLES, TABLES_SIZE);
    memcpy((void *)LAYOUT_TABLES, tables_initial, TABLES_SIZE);
}

/* The tables of returns as they are. Pages that nobody has written to are made, not read: that would take as long again. */
static void write_returns(uint64_t *to) {
    const uint64_t *from = (const uint64_t *)LAYOUT_TABLES;
    for (size_t page = 0; page < RETURN_PAGES; page++, to += PAGE_SIZE / 8, from += PAGE_SIZE / 8) {
        uint64_t empty = table_stub((uint64_t)from & -(8 * TABLE_ENTRIES));
        if (tables_is_used(page))
            memcpy(to, from, PAGE_SIZE);
        else
            for (size_t i = 0; i < PAGE_SIZE / 8; i++) to[i] = empty;
    }
}

/* Gives the tables of returns memory of the process's own, one huge page. The kernel puts it in their place in one go: other threads wait
 * for it if they look something up meanwhile, and those who change something wait for the lock. */
static void own_returns(void) {
    if (SYS(mmap, LAYOUT_TABLES_COPY, HUGE_PAGE, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (long)LAYOUT_TABLES_COPY)
        return;
    SYS(madvise, LAYOUT_TABLES_COPY, HUGE_PAGE, MADV_HUGEPAGE);
    write_returns((uint64_t *)LAYOUT_TABLES_COPY);
    if (!take_place(HUGE_PAGE)) SYS(munmap, LAYOUT_TABLES_COPY, HUGE_PAGE);
}

static void fill_returns(void) {
    own_returns();
    memset(heat, WORTH_A_PAGE, RETURN_PAGES);
    for (struct region *r = region_first(); r; r = r->next)
        for (size_t page = 0; r->is_kept && !r->retired && page < RETURN_PAGES; page++) preset_fill(r, page);
}

static void forget_from(uint64_t first, uint64_t last, gaddr pc) {
    for (uint64_t table = first; table <= last; table += 8 * TABLE_ENTRIES) {
        uint64_t *slot = table_slot(table, pc), empty = table_stub(table);
        if (*slot != empty) __atomic_store_n(slot, empty, __ATOMIC_RELEASE);
    }
}

void tables_forget(gaddr pc) { forget_from(LAYOUT_TABLES, TABLE_CALL, pc); }

void tables_forget_returns(gaddr pc) { forget_from(LAYOUT_TABLES, TABLE_RET(TABLES_RET - 1), pc); }

uint64_t tables_find_return(gaddr pc, uint64_t found) {
    for (uint64_t k = 0; k < TABLES_RET; k++)
        if (*table_slot(TABLE_RET(k), pc) == found) return TABLE_RET(k);
    return 0;
}

bool tables_worth_filling(uint64_t table, gaddr pc) {
    size_t page = ((uint64_t)table_slot(table, pc) - LAYOUT_TABLES) / PAGE_SIZE;
    bool worth = worth_a_page(&heat[page]);
    struct region *r = worth ? cache_kept_region(pc) : NULL;
    bool look = ++since == WORTH_LOOKING, all = !worth && ++missed == WORTH_ALL;
    if (!look && !all && (!r || preset_is_filled(r, page))) return worth;
    lock_take(&cache_lock);
    if (look && kept_tables_map()) {
        is_from_file = true;
        missed = 0;
    } else if (all) {
        fill_returns();
    }
    if (r && !r->retired) preset_fill(r, page);
    lock_drop(&cache_lock);
    return heat[page] >= WORTH_A_PAGE;
}

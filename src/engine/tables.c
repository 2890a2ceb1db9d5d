#include "engine/tables.h"

#include <linux/mman.h>

#include "engine/engine.h"
#include "engine/preset.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"

/* All pages cost as much as so many misses. */
#define WORTH_ALL 1600

_Static_assert(LAYOUT_TABLES % HUGE_PAGE == 0 && LAYOUT_TABLES_COPY % HUGE_PAGE == 0, "huge pages");
_Static_assert(TABLE_RET(TABLES_RET) - TABLE_RET(0) == HUGE_PAGE, "one huge page for returns");
_Static_assert(LAYOUT_TABLES + TABLES_SIZE <= TABLE_STORES, "tables do not overlap");

extern const uint64_t tables_initial[]; /* tables.S */

int call_index_shift;

static uint8_t heat[TABLE_PAGES];
static uint32_t missed; /* in pages that were not worth it; stays when all of them are */

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

/* Copies the tables of returns to memory of the process's own. The kernel puts the copy in their place in one go: other threads wait for it if
 * they look something up meanwhile, and those who change something wait for the lock. */
static void copy_returns(void) {
    if (SYS(mmap, LAYOUT_TABLES_COPY, HUGE_PAGE, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (long)LAYOUT_TABLES_COPY)
        return;
    SYS(madvise, LAYOUT_TABLES_COPY, HUGE_PAGE, MADV_HUGEPAGE);
    memcpy((void *)LAYOUT_TABLES_COPY, (const void *)LAYOUT_TABLES, HUGE_PAGE);
    if (SYS(mremap, LAYOUT_TABLES_COPY, HUGE_PAGE, HUGE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, LAYOUT_TABLES) !=
        (long)LAYOUT_TABLES)
        SYS(munmap, LAYOUT_TABLES_COPY, HUGE_PAGE);
}

static void fill_all(void) {
    copy_returns();
    SYS(madvise, TABLE_JMP, LAYOUT_TABLES + TABLES_SIZE - TABLE_JMP,
        MADV_POPULATE_WRITE); /* quicker than page by page */
    memset(heat, WORTH_A_PAGE, sizeof heat);
    for (struct region *r = region_first(); r; r = r->next)
        for (size_t page = 0; r->is_kept && !r->retired && page < TABLE_PAGES; page++) preset_fill(r, page);
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

bool tables_is_used(size_t page) { return heat[page] >= WORTH_A_PAGE; }

bool tables_worth_filling(uint64_t table, gaddr pc) {
    size_t page = ((uint64_t)table_slot(table, pc) - LAYOUT_TABLES) / PAGE_SIZE;
    bool worth = worth_a_page(&heat[page]);
    struct region *r = worth ? cache_kept_region(pc) : NULL;
    bool all = !worth && ++missed == WORTH_ALL;
    if (!all && (!r || preset_is_filled(r, page))) return worth;
    lock_take(&cache_lock);
    if (all)
        fill_all();
    else if (!r->retired)
        preset_fill(r, page);
    lock_drop(&cache_lock);
    return true;
}

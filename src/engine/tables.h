/* The lookup tables of returns, indirect jumps and indirect calls (inproc/layout.h), and what is worth putting into them.
 *
 * A process starts with tables that are the runtime's file, empty. A page of them is copied when it has been missed so often that
 * the copy has paid for itself: short programs never get around to it. A process that goes on missing maps tables that another one has kept for the same
 * libraries (kept_tables.h), or gets all pages for returns at once, as one huge page where the kernel has one, with all that kept
 * regions know for them (preset.h).
 *
 * Returns have several tables, and the place of the return instruction says which one it uses: addresses to return to whose low bits are the
 * same take each other's entry only if they called into the same part of the code. Functions begin at multiples of 16, so indirect
 * calls leave out the lowest four bits, where the processor can shift without touching flags.
 * Owner: one per address space. Changes need cache_lock. */
#ifndef REPRISE_TABLES_H
#define REPRISE_TABLES_H

#include "inproc/layout.h"
#include "inproc/types.h"

#define CALL_ALIGN_BITS 4
extern int call_index_shift; /* of TABLE_CALL: that, or 0 on processors without rorx. --debug rorx=0|1 */

static inline uint64_t *table_slot(uint64_t table, gaddr pc) {
    return (uint64_t *)table + (pc >> (table == TABLE_CALL ? call_index_shift : 0) & (TABLE_ENTRIES - 1));
}

/* The table that a return instruction looks into. A function seldom has returns on more than one page. */
static inline uint64_t table_of_return(gaddr pc) { return TABLE_RET(pc / PAGE_SIZE % TABLES_RET); }

/* What the entries of a table are at the start. */
static inline uint64_t table_stub(uint64_t table) {
    if (table == TABLE_JMP) return STUB_JMP;
    return table == TABLE_CALL ? STUB_CALL : STUB_RET((table - LAYOUT_TABLES) / (8 * TABLE_ENTRIES));
}

/* Writing to a page that is still a file's costs as much as two dozen misses. */
#define WORTH_A_PAGE 24

static inline bool worth_a_page(uint8_t *heat) {
    if (*heat >= WORTH_A_PAGE) return true;
    ++*heat; /* a lost count between threads does no harm */
    return false;
}

void tables_start(void);

/* Whether there can be entries in a page of the tables. */
bool tables_is_used(size_t page);
/* A kept region was loaded: what the tables lack is another matter now. */
void tables_another_region(void);
/* Whether the process would rather have found tables for its regions (kept_tables.h). */
bool tables_worth_keeping(void);

/* Tables without entries, anywhere in memory. */
void tables_clear(uint64_t *tables);
/* What is mapped at LAYOUT_TABLES_COPY becomes the tables. Caller holds cache_lock. */
bool tables_take_place(void);

/* All tables are without an entry for pc from now on; or those of returns are. Caller holds cache_lock. */
void tables_forget(gaddr pc);
void tables_forget_returns(gaddr pc);

/* The table that a return to pc has used, by the entry that it found; 0: the entry is another one by now. */
uint64_t tables_find_return(gaddr pc, uint64_t found);

/* A lookup of pc has missed: whether the table is to get an entry for it. Takes cache_lock. */
bool tables_worth_filling(uint64_t table, gaddr pc);

#endif

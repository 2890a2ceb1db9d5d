/* The lookup tables of returns, indirect jumps and indirect calls (inproc/layout.h), and what is worth putting into them.
 *
 * A process starts with tables that are the runtime's file, empty. A page of them is copied when it has been missed so often that
 * the copy has paid for itself: short programs never get around to it. A process that goes on missing gets all pages at once, as one
 * huge page where the kernel has one, with all that kept regions know for them (preset.h).
 * Owner: one per address space. Changes need cache_lock. */
#ifndef REPRISE_TABLES_H
#define REPRISE_TABLES_H

#include "inproc/types.h"

/* Writing to a page that is still a file's costs as much as two dozen misses. */
#define WORTH_A_PAGE 24

static inline bool worth_a_page(uint8_t *heat) {
    if (*heat >= WORTH_A_PAGE) return true;
    ++*heat; /* a lost count between threads does no harm */
    return false;
}

void tables_start(void);

/* A lookup of pc has missed: whether the table is to get an entry for it. Takes cache_lock. */
bool tables_worth_filling(uint64_t table, gaddr pc);

#endif

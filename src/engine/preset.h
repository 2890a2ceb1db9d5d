/* Presets: entries of the lookup tables that are kept with a region (kept.h).
 *
 * Every process starts with empty tables. One that runs from kept translations would miss at each return and indirect branch
 * once; so a kept region lists, by page of the tables, the entries that lead into itself. When a page has been missed often
 * enough to be worth having, all of the region's entries go into it at once.
 * Invariant: no entry leads to a block that was invalidated. Those of a block that goes for a breakpoint are taken out; a region
 * whose code changes loses all of them. */
#ifndef REPRISE_PRESET_H
#define REPRISE_PRESET_H

#include "engine/cache.h"

/* Makes r's list, from what the tables hold now, from its list so far, and from all that it could have. Caller holds
 * cache_lock; r is about to be saved. */
void preset_collect(struct region *r);

/* Puts r's entries for one page of the tables where nothing is yet; once for each region and page. Caller holds cache_lock. */
void preset_fill(struct region *r, size_t page);

/* The same for tables that are somewhere else, all of them. */
void preset_write(const struct region *r, uint64_t *tables);

/* Whether that has been done, or there is nothing to do. */
bool preset_is_filled(const struct region *r, size_t page);

/* Takes out what r has for pc, in all tables. Caller holds cache_lock. */
void preset_forget(struct region *r, gaddr pc);

#endif

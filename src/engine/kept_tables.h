/* Kept tables: the lookup tables (tables.h) with all that is known of a set of kept regions, for later processes that load the same.
 *
 * A process that misses often would fill tables of its own, which takes as long as a short program takes natively. What the presets
 * (preset.h) of its regions give is the same for every process that has loaded the same images, so the first one that has done it writes
 * it to a file, and others map that: pages that they only read stay the page cache's.
 * Invariant: a file is named by the places and checksums of the images that its entries lead into, and is used only by a process that
 * has loaded exactly these, with none of their blocks invalidated. */
#ifndef REPRISE_KEPT_TABLES_H
#define REPRISE_KEPT_TABLES_H

#include "inproc/types.h"

/* Puts the file for the regions that are loaded now in the place of the tables; false: there is none. Caller holds cache_lock. */
bool kept_tables_map(void);

/* Writes what was looked for in vain, if that is worth its room in the directory. Caller holds cache_lock. */
void kept_tables_save(void);

#endif

/* Where the regions of the code cache are, for those who hold no lock: a region may go away while somebody walks the list of them.
 * Changes need cache_lock. */
#ifndef REPRISE_SPANS_H
#define REPRISE_SPANS_H

#include "inproc/types.h"

struct region;

/* False: there are too many. */
bool span_add(uint64_t base, uint64_t end);
void span_remove(uint64_t base);
/* The region at host_pc. Only what the caller executes, or holds by its epoch, may be looked into. */
struct region *span_region_at(uint64_t host_pc);
/* Whether a region has addresses in [lo, hi). */
bool span_overlaps(gaddr lo, gaddr hi);

#endif

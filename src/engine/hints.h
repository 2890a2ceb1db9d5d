/* Hints: where translated code certainly is not. Bits are only ever set, so most questions are answered without a look at a map:
 * whether a block begins at an address (asked for each instruction that is translated), and whether a range of memory that the
 * program changes has translations at all (most such ranges are data). Set under cache_lock. */
#ifndef REPRISE_HINTS_H
#define REPRISE_HINTS_H

#include "engine/engine.h"

/* A block begins at pc. Addresses that lie together share a line of the cache. */
void hints_add_block(gaddr pc);
bool hints_may_be_block(gaddr pc);

/* There is, or will be, translated code of [lo, hi). */
void hints_add_code(gaddr lo, gaddr hi);
bool hints_may_be_code(gaddr lo, gaddr hi);

#endif

/* Arithmetic flags that nobody reads any more.
 *
 * Counting a tick with `sub` destroys them, so that is done where a scan of the code at the destination shows that they are
 * overwritten before anything reads them. The count must not show: dead flags are zero wherever somebody could look, which is at
 * a tick point that ends the budget, in the frame of a fault, and in the debugger. */
#ifndef REPRISE_FLAGS_H
#define REPRISE_FLAGS_H

#include "engine/tblock.h"
#include "inproc/types.h"

/* Whether the arithmetic flags are dead at pc, for a transfer at `from`. The scan relies only on code whose every change drops
 * the block of `from` (cache_invalidate_range). Caller holds cache_lock. */
bool flags_are_dead(gaddr from, gaddr pc);

/* The direct transfer at t->pc, which would be taken, is put off: dead flags become zero, but for what itself reads. */
void flags_settle_direct(struct tblock *t);
/* The same for an indirect one to `target`. */
void flags_settle_indirect(struct tblock *t, gaddr target);
/* The program was interrupted at t->pc. */
void flags_settle_fault(struct tblock *t);

#endif

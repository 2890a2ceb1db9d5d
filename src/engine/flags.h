/* Arithmetic flags that nobody reads any more.
 *
 * Counting a tick with `dec` destroys them, so that is done where a scan of the code at the destination shows that they are
 * overwritten before anything reads them. The count must not show: dead flags (but CF, which `dec` leaves alone) are zero wherever
 * somebody could look, which is at a tick point that ends the budget, in the frame of a fault, and in the debugger. */
#ifndef REPRISE_FLAGS_H
#define REPRISE_FLAGS_H

#include "engine/decode.h"
#include "engine/tblock.h"
#include "inproc/types.h"

/* A linker's stub for calls into other files (the jump of an entry of .plt, .plt.got or .plt.sec). The code that may run behind it
 * includes the resolver, which keeps no flags, so nobody passes any through it: where ticks are counted it sets them to what
 * comparing a register with itself gives, which makes them dead in front. Asks only the 16 bytes around. */
bool flags_is_linker_stub(const struct insn *in);

/* Whether the arithmetic flags are dead at pc, for a transfer at `from`. The scan relies only on code whose every change drops
 * the block of `from` (cache_invalidate_range). Caller holds cache_lock. */
bool flags_are_dead(gaddr from, gaddr pc);

/* The direct transfer at t->pc, which would be taken, is put off: dead flags become zero, but for what itself reads. */
void flags_settle_direct(struct tblock *t);
/* The thread is on its way to pc. */
void flags_settle(struct tblock *t, gaddr pc);
/* What somebody sees who looks at a thread at pc. */
uint64_t flags_as_shown(gaddr pc, uint64_t rflags);

#endif

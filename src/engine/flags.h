/* Arithmetic flags that nobody reads any more.
 *
 * Counting a tick with `sub` destroys them, so that is done where a scan of the code ahead shows that they are overwritten
 * before anything reads them. What could still be seen, in the frame of a signal handler, must not depend on the count, nor
 * on how the code was translated: under a policy with ticks, dead flags are zero at every fault and tick point. */
#ifndef REPRISE_FLAGS_H
#define REPRISE_FLAGS_H

#include "engine/tblock.h"
#include "inproc/types.h"

/* Stretches of code that a scan may rely on. NULL in the place of it: any executable memory, as it is now. */
struct flags_scope {
    gaddr start[2], end[2];
};

/* Whether the arithmetic flags are dead at pc. Caller holds cache_lock. */
bool flags_are_dead(gaddr pc, const struct flags_scope *scope);

/* Dead flags become zero: at an instruction that faulted; at a tick point whose transfer would be taken. They take cache_lock. */
void flags_settle_at_fault(struct tblock *t);
void flags_settle_at_tick(struct tblock *t);

#endif

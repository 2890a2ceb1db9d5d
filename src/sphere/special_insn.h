/* Instructions that are not run in the cache but done by hand. */
#ifndef REPRISE_SPECIAL_INSN_H
#define REPRISE_SPECIAL_INSN_H

#include "engine/engine.h"

/* engine_host.special: t->pc is the instruction; it is advanced, or a signal is delivered. */
void special_insn(struct tblock *t, enum special what);
/* What SPECIAL_RECORDED leads to; unless a recorder sets it, the instruction is executed (recorded_insn.h). */
extern void (*special_recorded)(struct tblock *t);

/* Raises what the processor raises when it cannot fetch an instruction byte from addr. */
void special_fetch_fault(struct tblock *t, gaddr addr);
/* engine_host.bad_target */
void special_bad_target(struct tblock *t);

#endif

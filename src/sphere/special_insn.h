/* Instructions that are not run in the cache but done by hand. */
#ifndef REPRISE_SPECIAL_INSN_H
#define REPRISE_SPECIAL_INSN_H

#include "engine/engine.h"

/* engine_host.special: t->pc is the instruction; it is advanced, or a signal is delivered. */
void special_insn(struct tblock *t, enum special what);

#endif

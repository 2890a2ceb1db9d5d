/* Conditions of breakpoints, evaluated where the program runs: one that is false costs a step, not a question. */
#ifndef REPRISE_DEBUG_CONDITION_H
#define REPRISE_DEBUG_CONDITION_H

#include "sphere/thread.h"

/* A list of struct worker_condition, `len` bytes of it. add: in addition to those there are. */
void condition_set(const uint8_t *list, size_t len, bool add);
/* Where t stands: true unless there are conditions and all are false. */
bool condition_holds(const struct thread *t);

#endif

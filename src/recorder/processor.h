/* Which processor a turn is taken on.
 *
 * Threads that take turns never run at the same time, so they may as well run in the same place. The kernel does not know that and
 * wakes each of them on a processor of its own, which is asleep by then: in a virtual machine that takes up to 0.3 ms, as often
 * as there are turns. So who gives the turn away confines the other one to its own processor, and the other one is free again as
 * soon as it runs: the kernel can still move it if somebody else wants the processor. */
#ifndef REPRISE_PROCESSOR_H
#define REPRISE_PROCESSOR_H

#include "sphere/thread.h"

/* t, which sleeps, is to wake up where the caller runs. */
void processor_bring(struct thread *t);
/* The caller runs again, after processor_bring() or not. */
void processor_release(struct thread *self);

#endif

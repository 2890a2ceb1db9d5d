/* Restoring: a replaying process begins with a checkpoint instead of START or FORKED. */
#ifndef REPRISE_RESTORE_H
#define REPRISE_RESTORE_H

#include "sphere/thread.h"

/* image: a descriptor, see log/image.h. Does not return. */
void restore_start(struct thread *t, uint64_t stream, int image) __attribute__((noreturn));

#endif

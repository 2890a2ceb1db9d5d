/* Writers (recording): who changes a file tells the processes of the sphere that have it mapped privately, before it changes it. They
 * borrow what they have of it (borrowed.h).
 *
 * A file is looked up by bits (log/channel.h) that are set when it is mapped, or opened for writing, anywhere in the sphere: whoever
 * maps a file sets one and then looks at the other, whoever opens one for writing does it the other way round, so at least one of
 * them finds out. Nothing else is done for files of which only one bit is set.
 *
 * A file that is cut off loses what processes had written privately, too, behind its new end. Until somebody makes it longer again
 * there is a SIGBUS for that, which is logged like any other: so it is enough to tell them behind the call (once more: if they had
 * not been told before, too, record --check would miss pages). Whenever others are told it is in front of a call of the
 * writer's, when it has no events under way. */
#ifndef REPRISE_WRITERS_H
#define REPRISE_WRITERS_H

#include "sphere/aspace.h"
#include "sphere/thread.h"

/* A stream begins, or is about to begin with a fork. */
void writers_start(void);
void writers_fork(uint32_t ring);

/* A file is about to be mapped. */
void writers_map(const struct file_id *id);
/* It has been: whether another process has it open for writing. */
bool writers_has(const struct file_id *id);

/* This process has opened a file for writing, or cut it off: others are to be told. */
void writers_opened(uint64_t dev, uint64_t ino);
void writers_cut(uint64_t dev, uint64_t ino);
/* The call that comes next will cut off a file, or map it so that it can be written to: the same. */
bool writers_foresee(uint64_t nr, const uint64_t a[6]);
extern bool writers_due;
/* Tells them. t has the turn, and lends it. */
void writers_tell(struct thread *t);

/* Another process has told us, at a safepoint; flags: EVF_* of the place. */
void writers_told(struct thread *t, uint64_t dev, uint64_t ino, uint8_t flags);

#endif

/* Saving checkpoints, in the recorded program.
 *
 * The R-thread that has the turn calls, at a safepoint, with all other R-threads outside of the cache (waiting for the turn or
 * in calls):
 *
 *     if (save_is_due(now) && save_can_be_afforded(now)) save_checkpoint(&place, state, len, false);
 *
 * What the state is made of is the caller's business. Modified pages are copied into the area (ckpt/area.h); comparing and
 * storing happens in the controller while the program runs on. `last`: the program will not go on (exit, fatal signal): waits
 * until the controller has the one before, if need be.
 *
 * The interval begins at save_interval_ms and stretches so that what a checkpoint costs the program, the copies and the
 * faults that tracking makes, stays below 3 %. The first one, which has all of memory, is put off for the same reason. */
#ifndef REPRISE_CKPT_SAVE_H
#define REPRISE_CKPT_SAVE_H

#include "ckpt/area.h"
#include "inproc/types.h"

/* `--debug ckpt=MS`, 0: none. */
extern uint64_t save_interval_ms;
/* `--debug ckpt-stretch=0`: the interval is kept whatever it costs. For tests. */
extern bool save_stretches;
/* Pages of shared memory that a checkpoint will have, beside those that the process has for itself. */
extern uint64_t save_shared_pages;

/* When a stream begins: at the start, after exec, after a fork in the child. Nothing more happens until a checkpoint is due. */
void save_start(int channel_fd, uint32_t ring, uint64_t stream);
/* Ends the saver, until the next checkpoint, which is to have all of memory. */
void save_without_thread(void);
/* now: monotonic, nanoseconds. Cheap. False while the last one is still being stored. */
bool save_is_due(uint64_t now);
/* Only where a checkpoint is possible: may make the saver, which belongs to the process of who asks. */
bool save_can_be_afforded(uint64_t now);
/* False: not taken, because the controller has no room or no wish, or memory cannot be tracked. */
bool save_checkpoint(const struct ckpt_place *place, const void *state, size_t len, bool last);

/* What checkpoints hold beside private memory (sphere/shared_left.h). */
struct save_more {
    void (*save)(void);  /* while one is saved: puts pages */
    void (*saved)(void); /* it is */
};
extern const struct save_more *save_more; /* NULL: nothing */
/* For these: room for a page, NULL if the checkpoint is given up; and that it is there now. has_base: what is zero is stored, too. */
void *save_room(void);
void save_put(uint64_t address, bool has_base);

#endif

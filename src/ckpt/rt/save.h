/* Saving checkpoints, in the recorded program.
 *
 * The R-thread that has the turn calls, at a safepoint, with all other R-threads outside of the cache (waiting for the turn or
 * in calls):
 *
 *     if (save_is_due(now)) save_checkpoint(&place, state, len, false);
 *
 * State is opaque here. Small sets of pages are copied at once; of large ones the
 * pages are closed, copied by a thread of the runtime in address order while the program runs on, and a page that is written
 * before its turn comes is copied first, by the fault (the collision list). `wait`: the program will not go on (exit, fatal
 * signal, exec): all is with the controller when the call returns.
 *
 * The interval starts at about one second and stretches so that what a checkpoint costs the program stays below 3 %. */
#ifndef REPRISE_CKPT_SAVE_H
#define REPRISE_CKPT_SAVE_H

#include "ckpt/area.h"
#include "inproc/types.h"

/* When the stream begins (start, after a fork in the child, after exec): area of the stream's ring, `--debug ckpt=MS` interval
 * (0: none). Nothing else happens until a checkpoint is due. */
void save_start(int channel_fd, uint32_t ring, uint64_t stream);
extern uint64_t save_interval_ms;

/* now: monotonic, nanoseconds. Cheap. False while the last one is still being saved. */
bool save_is_due(uint64_t now);
/* False: not taken (the controller has no room or no wish, tracking failed). The program goes on as if nothing had been. */
bool save_checkpoint(const struct ckpt_place *place, const void *state, size_t len, bool wait);
/* A write fault on a page that is still to be saved. True: it is saved and open now. Takes cache_lock. */
bool save_write_fault(gaddr addr);

#endif

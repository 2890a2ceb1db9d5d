/* Snapshots while recording: the state of this process beside memory (log/snapshot.h). Called by the R-thread that has the turn. */
#ifndef REPRISE_SNAPSHOT_H
#define REPRISE_SNAPSHOT_H

#include "log/snapshot.h"
#include "sphere/thread.h"

/* Bytes that a snapshot taken by t will take. */
size_t snapshot_size(const struct thread *t);
/* Writes one; t is in front of an instruction. `event`, `position`: where the stream goes on. */
void snapshot_write(struct thread *t, uint64_t event, uint64_t position, uint64_t ended_ticks, void *to);

/* Recording and replay: hash of what the R-threads have in their registers; t runs. */
uint64_t snapshot_threads(struct thread *t, uint32_t *n);

/* Host addresses that a transfer under way has left below the stack pointer of t, which stands at a tick point: cleared. */
void snapshot_clear_host_words(struct thread *t);

#endif

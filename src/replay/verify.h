/* Checkpoints of a recording against a replay from its start. */
#ifndef REPRISE_REPLAY_VERIFY_H
#define REPRISE_REPLAY_VERIFY_H

#include "replay/timeline.h"

/* Each block that a checkpoint of any process has must be in that process's memory at the same place. `pid` and `program` of the
 * options do not matter. False: why says. */
bool verify_checkpoints(const struct timeline_options *, char *why, size_t cap);

#endif

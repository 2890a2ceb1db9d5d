/* A recorded process as the target of a debugger: its programs, each a timeline, joined where it executed the next one. */
#ifndef REPRISE_REPLAY_PROCESS_H
#define REPRISE_REPLAY_PROCESS_H

#include "replay/timeline.h"

/* Stands at the begin of the first program. `program` of the options does not matter. NULL: why says. */
struct target *process_open(const struct timeline_options *, char *why, size_t cap);

#endif

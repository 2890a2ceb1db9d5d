/* Elapsed: when the program was at a place, from the times that the recording has. */
#ifndef REPRISE_REPLAY_ELAPSED_H
#define REPRISE_REPLAY_ELAPSED_H

#include "log/recording.h"
#include "rsp/target.h"

/* Seconds since the recording began. False: the recording has no times, because its controller was killed. */
bool elapsed_at(const struct recording *, uint64_t stream, struct position at, double *seconds);
/* The same as a line for the user. */
void elapsed_text(const struct recording *, uint64_t stream, struct position at, char *out, size_t cap);

#endif

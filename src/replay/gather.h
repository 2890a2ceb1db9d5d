/* Gathering: all processes of a recording are replayed once, without a debugger, and what they got from each other through shared
 * memory is written to a page log (log/page_log.h). It is kept beside the recording's log, for the next time. */
#ifndef REPRISE_REPLAY_GATHER_H
#define REPRISE_REPLAY_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/recording.h"

/* A descriptor of the page log; -1: why says. stop: looked at while it is made, which ends when it is not 0. */
int gather(const struct recording *, const uint32_t *stop, char *why, size_t cap);

#endif

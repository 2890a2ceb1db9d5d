#ifndef REPRISE_WHY_COMMAND_H
#define REPRISE_WHY_COMMAND_H

#include "log/recording.h"
#include "rsp/target.h"

/* text: what follows `why`. The answer, of at most cap bytes, is for the user. */
void why_command(struct target *, const struct recording *, uint64_t stream, uint64_t program, const char *text,
                 char *out, size_t cap);

#endif

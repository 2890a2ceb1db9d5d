/* Events as text: what `dump` prints. */
#ifndef REPRISE_EVENT_TEXT_H
#define REPRISE_EVENT_TEXT_H

#include <stdio.h>

#include "log/recording.h"

/* Name of a system call, or NULL. */
const char *syscall_name(unsigned number);

/* What is particular to an event of its kind, without line end: `read(3, 0x7ffc..., 0x200) = 12`. */
void event_print(FILE *, const struct event *);
/* The same as members of a JSON object, each with a comma in front. */
void event_print_json(FILE *, const struct event *);

#endif

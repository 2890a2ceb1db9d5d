/* Contents of shared and of changed files, in a process that is replayed alone: a memfd of its own.
 * Invariant: no other process maps it; a copy that is forked gets its own before it does anything else. */
#ifndef REPRISE_CONTENTS_H
#define REPRISE_CONTENTS_H

#include "sphere/file_changes.h"

/* Where the file with this number (shared.h) is. `first`: what it contains, if it is new here. */
struct file_source contents_of(uint64_t object, const struct ev_mapped *first);
/* In a copy of the process. */
void contents_after_fork(void);
/* Of all of it. */
uint64_t contents_hash(void);
uint64_t contents_pages(void);

#endif

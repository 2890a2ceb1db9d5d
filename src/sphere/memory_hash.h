/* A hash of what the program has in memory: `record --check` writes them into the log, `replay --verify` compares. */
#ifndef REPRISE_MEMORY_HASH_H
#define REPRISE_MEMORY_HASH_H

#include "inproc/types.h"
#include "log/events.h"

/* Over all pages of private memory that the program has written and that are not all zero. It does not matter where the
 * kernel keeps them and whether pages without contents exist. */
bool memory_hash(struct ev_hash *h); /* false: it cannot be told */
/* In a worker, whose shared memory is private, too, but for files. */
bool memory_hash_alone(struct ev_hash *h);
bool memory_is_zero(const void *page);

/* Clears what calls and returns that were under way have left of the code cache's addresses, wherever that is (see
 * snapshot_clear_host_words). */
void memory_clear_host_words(void);

#endif

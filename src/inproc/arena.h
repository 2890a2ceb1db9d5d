/* Memory of the runtime itself: never the program's, never part of a checkpoint. */
#ifndef REPRISE_ARENA_H
#define REPRISE_ARENA_H

#include "inproc/types.h"

/* Zeroed pages at the next free address of the arena window; whole pages. Dies if the kernel refuses. */
void *arena_pages(size_t bytes);
/* The same, but NULL if the kernel refuses. */
void *arena_try_pages(size_t bytes);
/* The same, but only reserved: touching makes it real (for tables that grow). */
void *arena_reserve(size_t bytes);
void arena_free_pages(void *p, size_t bytes);

/* Small zeroed objects that live as long as the process. */
void *arena_alloc(size_t bytes);
/* Around fork: the child must not find an allocation half done. */
void arena_hold(void);
void arena_release(void);

#endif

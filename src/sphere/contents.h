/* Contents of shared and of changed files, in a process that is replayed alone: a memfd of its own.
 * Invariant: no other process maps it; a copy that is forked gets its own before it does anything else. */
#ifndef REPRISE_CONTENTS_H
#define REPRISE_CONTENTS_H

#include "sphere/file_changes.h"

/* Where the file with this number (shared.h) is. `first`: what it contains, if it is new here. */
struct file_source contents_of(uint64_t object, const struct ev_mapped *first);
/* The next page of the file, from *page on, that is not zero. False: there is none. */
bool contents_next(uint64_t object, uint64_t *page, void *to);
/* The same for anonymous memory, which is there from now on: what is mapped twice has to be. */
struct file_source contents_of_anonymous(uint64_t object);
bool contents_has(uint64_t object);
/* What lies behind `size` bytes of a file is zero from now on. */
void contents_cut(struct file_source s, uint64_t size);
/* Nobody maps it any more; it may be new again. */
void contents_forget(uint64_t object);
/* Copies the data of one file to another, which is empty. */
void contents_copy(int from, int to);
/* In a copy of the process. */
void contents_after_fork(void);
/* Of all of it. */
uint64_t contents_hash(void);
uint64_t contents_pages(void);

#endif

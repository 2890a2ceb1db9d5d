/* A set of pages, as maps of 512 found by hash. */
#ifndef REPRISE_CKPT_PAGE_SET_H
#define REPRISE_CKPT_PAGE_SET_H

#include "inproc/types.h"

#define PAGE_SET_CHUNK (512 * PAGE_SIZE)

struct page_set_chunk {
    uint64_t number; /* plus one; 0: free */
    uint64_t bits[8];
};

struct page_set {
    struct page_set_chunk *table; /* memory of the runtime; grows */
    uint64_t mask, used;
};

/* Ranges are whole pages. */
void page_set_add(struct page_set *s, gaddr start, gaddr end);
void page_set_remove(struct page_set *s, gaddr start, gaddr end);
bool page_set_has(const struct page_set *s, gaddr page);
/* The first run of pages at or above *start and below end; false: none. */
bool page_set_next(const struct page_set *s, gaddr *start, gaddr *stop, gaddr end);
void page_set_clear(struct page_set *s);

#endif

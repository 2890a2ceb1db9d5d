/* Copies of shared pages, found by object and page: what a process left in them. */
#ifndef REPRISE_PAGE_COPIES_H
#define REPRISE_PAGE_COPIES_H

#include "sphere/shared.h"

struct page_copy {
    struct shared_at at; /* object 0: free slot */
    uint8_t *bytes;      /* the caller's business, as is state; both are 0 in a new one */
    int state;
};

struct page_copies {
    struct page_copy *slots; /* by hash */
    uint64_t room, used;
};

/* NULL: there is none. */
struct page_copy *page_copies_find(const struct page_copies *, struct shared_at at);
/* The same; if there is none it is made, which moves the others. */
struct page_copy *page_copies_make(struct page_copies *, struct shared_at at);
/* What their bytes are is up to the caller. */
void page_copies_drop(struct page_copies *);

#endif

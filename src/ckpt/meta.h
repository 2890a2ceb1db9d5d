/* Metadata of one checkpoint: which blocks it holds, and where they are. */
#ifndef REPRISE_CKPT_META_H
#define REPRISE_CKPT_META_H

#include <stdbool.h>
#include <stddef.h>

#include "ckpt/format.h"

/* As written, in memory that is mapped from its file. Immutable. */
struct meta {
    const struct meta_head *head;
    const struct ckpt_range *dropped;
    const struct meta_page *pages;
    const struct meta_block *blocks;
    const uint8_t *state;
    size_t size;    /* of the file */
    bool is_mapped; /* to be unmapped; otherwise somebody else's bytes */
    size_t latest;  /* where the last search ended: the next one mostly begins there */
};

/* Checks n bytes, of a file with n_slots slots beside it. False: why says. The bytes must stay. */
bool meta_check(struct meta *m, const void *bytes, size_t n, uint64_t n_slots, char why[256]);
/* Maps the file and checks it. */
bool meta_map(struct meta *m, int fd, uint64_t n_slots, char why[256]);
void meta_unmap(struct meta *m);

/* The page's entry or NULL. */
const struct meta_page *meta_find(struct meta *m, uint64_t address);
/* Index of the first page not below address. */
size_t meta_first_from(const struct meta *m, uint64_t address);
bool meta_drops(const struct meta *m, uint64_t address);
/* The block's entry; it must be in page->blocks. */
static inline const struct meta_block *meta_block_of(const struct meta *m, const struct meta_page *page, unsigned i) {
    return &m->blocks[page->first + (unsigned)__builtin_popcountll(page->blocks & ((1ull << i) - 1))];
}

/* One being made. Zeroed at first. */
struct draft {
    struct ckpt_range *dropped;
    size_t n_dropped, dropped_room;
    struct meta_page *pages;
    size_t n_pages, page_room;
    struct meta_block *blocks;
    size_t n_blocks, block_room;
};

bool draft_drop(struct draft *d, struct ckpt_range r);              /* ascending; what touches becomes one */
bool draft_page(struct draft *d, uint64_t address);                 /* the blocks that are added from now on are its */
bool draft_block(struct draft *d, unsigned i, struct meta_block b); /* ascending within a page */
void draft_end_page(struct draft *d);                               /* takes a page back that has got no block */
bool draft_drops(const struct draft *d, uint64_t address);
/* Puts pages into address order. False: one is there twice, or no memory. */
bool draft_sort(struct draft *d);
void draft_free(struct draft *d);

/* Writes a whole file to fd; counts and hashes of head are filled in. False: errno. */
bool meta_write(int fd, struct meta_head *head, const struct draft *d, const void *state, size_t state_len);

/* Whether address is in one of the n ascending ranges. */
bool range_holds(const struct ckpt_range *list, size_t n, uint64_t address);

#endif

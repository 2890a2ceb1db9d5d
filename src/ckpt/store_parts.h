/* What the files of the checkpoint store share: files.c (names and opening), store.c (reading), write.c, merge.c. */
#ifndef REPRISE_CKPT_STORE_PARTS_H
#define REPRISE_CKPT_STORE_PARTS_H

#include "ckpt/meta.h"
#include "ckpt/slots.h"
#include "ckpt/store.h"

#define STORE_MOST 126 /* checkpoints: two a level, and 2^62 of them cannot be taken */

struct ckpt_store {
    int dir; /* -1: temporary, metadata has no names */
    uint64_t stream;
    bool writes;
    struct slots slots;
    struct meta list[STORE_MOST + 2]; /* oldest first; levels do not grow */
    size_t n;
    char damage[512];

    /* The checkpoint under way. */
    bool is_open;
    struct ckpt_place place;
    struct draft draft;
    uint64_t trimmed; /* slots that were free when they were last trimmed */
    char error[256];
};

/* ---- files.c ---- */

/* A new file for metadata, to be published under the name of its numbers, or thrown away. -1: errno. */
int files_new_meta(const struct ckpt_store *s);
/* fd becomes the file of [first, last]. False: errno. */
bool files_publish(const struct ckpt_store *s, int fd, uint64_t first, uint64_t last);
void files_remove(const struct ckpt_store *s, uint64_t first, uint64_t last);

/* ---- write.c ---- */

/* Remembers errno with what failed; returns false. */
bool store_fails(struct ckpt_store *s, const char *what);
/* Writes the metadata of a checkpoint, publishes it, and maps it. */
bool store_publish(struct ckpt_store *s, struct meta_head *head, const struct draft *d, const void *state, size_t len,
                   struct meta *out);

/* ---- merge.c ---- */

/* A third checkpoint of level 0 is about to appear: merges until no level has three. */
bool store_make_way(struct ckpt_store *s);

/* ---- store.c ---- */

/* Where each block of the page is, at checkpoint i (`i` < n). Returns which are known. */
uint64_t store_locate(struct ckpt_store *s, size_t i, uint64_t address, struct meta_block out[CKPT_PAGE_BLOCKS]);

#endif

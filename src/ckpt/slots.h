/* Data of a checkpoint store: slots of 64 bytes in a file, and which of them are free.
 * Invariant: a slot that metadata on disk names is not free, and is never written again before that metadata is gone. */
#ifndef REPRISE_CKPT_SLOTS_H
#define REPRISE_CKPT_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "ckpt/place.h"

#define SLOTS_MAX (UINT32_MAX - 1u) /* 256 GB */
#define SLOTS_NONE UINT32_MAX

struct slots {
    int fd;
    uint64_t n;    /* that the file has */
    uint64_t used; /* of these */

    /* Writing. */
    uint64_t *map; /* bit: in use */
    size_t map_words;
    uint64_t hint; /* no free slot below */
    uint8_t *run;  /* slots that are yet to be written, in a row */
    uint32_t run_first, run_n;
    const uint8_t *view; /* of the file, for comparing */
    size_t view_size;

    /* Reading: pieces of the file. Slots of one checkpoint lie in a row by and large, so most are in a piece that was read for
     * another one. Not mapped: a file that gets shorter meanwhile must not be our end. */
    struct slots_piece *pieces; /* NULL: none yet */
};

/* fd: empty, for writing; owned from here on. */
bool slots_create(struct slots *s, int fd);
/* fd: to be read. */
bool slots_open(struct slots *s, int fd);
void slots_close(struct slots *s);

/* A slot with these bytes; SLOTS_NONE: errno. Can be read after slots_flush. */
uint32_t slots_put(struct slots *s, const void *block);
bool slots_flush(struct slots *s);
void slots_give_back(struct slots *s, uint32_t slot);
/* What is free in large pieces goes back to the file system. */
void slots_trim(struct slots *s);

/* The bytes of a slot, mapped; only while writing, for slots that were flushed before the last slots_look. */
static inline const uint8_t *slots_at(const struct slots *s, uint32_t slot) {
    return s->view + (size_t)slot * CKPT_BLOCK;
}
bool slots_look(struct slots *s);
/* n slots in a row. False: not there. */
bool slots_read(struct slots *s, uint32_t slot, size_t n, void *to);
uint32_t slots_check(const void *block);

#endif

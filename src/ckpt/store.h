/* Checkpoint store: the memory of one stream at several places, as the 64-byte blocks that changed from one to the next.
 *
 * A checkpoint holds what changed since the one before it: ranges whose contents went away (unmapped, replaced, MADV_DONTNEED),
 * then the blocks that were written, and an opaque state. Two checkpoints of level N become one of level N + 1 when a third of
 * level N appears; of the two, only the later place can be restored from then on. So the number of checkpoints, and the space
 * for a program that goes on in the same memory, grow with the logarithm of the run; the nearer the end, the denser they are.
 *
 * Metadata (which block is where) is apart from data (slots of 64 bytes in one file); merging moves no data, and slots that
 * only the earlier one needed go to the free list. docs/formats.md, "Checkpoints", is the normative text.
 *
 * Writing, by the controller or by a timeline (with ckpt_create_temporary):
 *
 *     ckpt_begin(s, &place, dropped, n);          the ranges come first: pages are compared with what is there behind them
 *     ckpt_page(s, address, base, bytes); ...     each page once; ascending addresses are faster, and not needed
 *     ckpt_commit(s, state, len);                 from here on it is there, whatever happens
 *
 * One that is not committed leaves no trace. The process may be killed anywhere: what was committed can be opened.
 * Restoring checkpoint i: map what ckpt_state(s, i) says is mapped, with the contents of its files; then
 *
 *     struct ckpt_cursor c;
 *     for (ckpt_pages(s, i, &c); ckpt_next(&c, &page);) write the blocks of page.blocks to page.address
 *     if (c.why[0]) damaged
 *
 * A store is used by one thread at a time. Files are hostile: everything is checked when it is opened and read. */
#ifndef REPRISE_CKPT_STORE_H
#define REPRISE_CKPT_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "ckpt/place.h"
#include "log/place.h" /* WHY_MAX */

struct ckpt_store;

/* ---- opening ---- */

/* A new store for writing, in DIR/ckpt-STREAM.*; what was there is removed. NULL: why says. */
struct ckpt_store *ckpt_create(const char *dir, uint64_t stream, char *why);
/* The same in files that nobody else sees, under $TMPDIR: for the checkpoints of a replay. */
struct ckpt_store *ckpt_create_temporary(char *why);
/* For reading; pieces that are damaged end it: what comes before them counts (ckpt_damage tells). NULL: there is nothing
 * that can be used, why says. */
struct ckpt_store *ckpt_open(const char *dir, uint64_t stream, char *why);
void ckpt_close(struct ckpt_store *);
/* "" or one line about what was left out when it was opened. */
const char *ckpt_damage(const struct ckpt_store *);

/* Streams of DIR that have a store, ascending; to be freed. False: why says. */
bool ckpt_streams(const char *dir, uint64_t **streams, size_t *n, char *why);
/* Files of all stores in DIR, names without path; each to be freed, and the list. For pack and rm. */
bool ckpt_files(const char *dir, char ***names, size_t *n, char *why);
void ckpt_files_free(char **names, size_t n);
/* Whether `name` is one that such a file can have. For unpack. */
bool ckpt_is_file_name(const char *name);
/* What they take on disk, all together. */
uint64_t ckpt_disk_size(const char *dir);
/* Removes them all; the bytes that they took. */
uint64_t ckpt_remove_files(const char *dir);

/* ---- writing ---- */

/* All return false after an error, of which ckpt_error tells; the checkpoint under way is given up then. */
bool ckpt_begin(struct ckpt_store *, const struct ckpt_place *place, const struct ckpt_range *dropped, size_t n);
bool ckpt_page(struct ckpt_store *, uint64_t address, enum ckpt_base base, const void *bytes);
bool ckpt_commit(struct ckpt_store *, const void *state, size_t len);
void ckpt_abort(struct ckpt_store *);
const char *ckpt_error(const struct ckpt_store *);

/* ---- reading ---- */

struct ckpt_info {
    struct ckpt_place place;
    uint64_t first, last; /* which of the checkpoints that were taken it stands for; `last` is the place */
    uint32_t level;
    uint64_t pages, blocks; /* stored with this one */
    size_t state_len;
};

size_t ckpt_count(const struct ckpt_store *); /* that can be restored, oldest first */
bool ckpt_info(const struct ckpt_store *, size_t i, struct ckpt_info *out);
/* State of checkpoint i; stays until the store is closed or written to. NULL: no such checkpoint. */
const void *ckpt_state(const struct ckpt_store *, size_t i, size_t *len);
/* The last one at or before (event, ticks): ticks are compared only where `event` is equal. SIZE_MAX: none. */
size_t ckpt_before(const struct ckpt_store *, uint64_t event, uint64_t ticks);

struct ckpt_restored { /* a page */
    uint64_t address;
    uint64_t blocks; /* bit i: bytes i*64.. are known. Others are what the mapping has by itself: its file's, or zero */
    uint8_t bytes[CKPT_PAGE];
};

struct ckpt_cursor {
    const struct ckpt_store *store;
    size_t checkpoint;
    uint64_t next;  /* address from which on pages are still to come */
    size_t at[128]; /* per checkpoint: the first page not below `next` */
    char why[256];  /* "" or what is damaged */
};

/* All pages of checkpoint i that hold anything known, in address order. */
void ckpt_pages(const struct ckpt_store *, size_t i, struct ckpt_cursor *c);
bool ckpt_next(struct ckpt_cursor *c, struct ckpt_restored *out);
/* One page at checkpoint i, by binary search, newest first. False: nothing is known of it, or it is damaged (why not ""). */
bool ckpt_read(const struct ckpt_store *, size_t i, uint64_t address, struct ckpt_restored *out, char why[256]);

struct ckpt_space {
    uint64_t taken;      /* checkpoints so far */
    uint64_t data, meta; /* bytes on disk: slots in use or free, metadata with states */
    uint64_t free;       /* of data: slots free */
    uint64_t
        unconsolidated; /* what an undo log without consolidation would have taken: 72 bytes for each block saved */
};
struct ckpt_space ckpt_space(const struct ckpt_store *);

#endif

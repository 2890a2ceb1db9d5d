/* Checkpoints that were taken while recording (src/ckpt): where they are, and workers that begin with one. */
#ifndef REPRISE_REPLAY_STORED_H
#define REPRISE_REPLAY_STORED_H

#include "ckpt/store.h"
#include "log/recording.h"
#include "rsp/target.h"

struct stored_page {
    uint64_t address; /* as the pages of a checkpoint have it */
    uint8_t bytes[CKPT_PAGE];
};

/* Those of one stream. */
struct stored {
    struct ckpt_store *store;      /* NULL: none */
    uint64_t stream_len;           /* bytes of the stream's events: places behind them are of no use */
    struct stored_page *inherited; /* shared memory as it was when the stream began (inherited.c) */
    size_t n_inherited, inherited_room;
    bool has_inherited; /* they are known */
};

#define STORED_NONE SIZE_MAX

void stored_open(struct stored *, const struct recording *, uint64_t stream);
void stored_close(struct stored *);
size_t stored_count(const struct stored *);
struct position stored_place(const struct stored *, size_t i);
/* The last one not behind p. STORED_NONE: none. */
size_t stored_before(const struct stored *, struct position p);
/* Shared memory of checkpoint i (log/snapshot.h): a list of *n objects. */
struct snapshot_object;
const struct snapshot_object *stored_objects(const struct stored *, size_t i, size_t *n);
/* An image of checkpoint i for a worker (log/image.h): a descriptor; -1: it cannot be used. */
int stored_image(const struct stored *, size_t i);

#endif

/* Checkpoints that were taken while recording (src/ckpt): where they are, and workers that begin with one. */
#ifndef REPRISE_REPLAY_STORED_H
#define REPRISE_REPLAY_STORED_H

#include "ckpt/store.h"
#include "log/recording.h"
#include "rsp/target.h"

/* Those of one stream. */
struct stored {
    struct ckpt_store *store; /* NULL: none */
    uint64_t stream_len;      /* bytes of the stream's events: places behind them are of no use */
};

#define STORED_NONE SIZE_MAX

void stored_open(struct stored *, const struct recording *, uint64_t stream);
void stored_close(struct stored *);
size_t stored_count(const struct stored *);
struct position stored_place(const struct stored *, size_t i);
/* The last one not behind p. STORED_NONE: none. */
size_t stored_before(const struct stored *, struct position p);
/* An image of checkpoint i for a worker (log/image.h): a descriptor; -1: it cannot be used. */
int stored_image(const struct stored *, size_t i);

#endif

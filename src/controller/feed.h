/* Feed: fills the rings of a replay with the events of a recording.
 * Invariant: a ring holds whole events only, in the order of its stream. */
#ifndef REPRISE_FEED_H
#define REPRISE_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/channel_host.h"
#include "log/channel.h"
#include "log/recording.h"

struct feeding { /* one ring in use */
    bool active;
    bool all; /* everything is in the ring */
    bool refused;
    struct stream_reader reader;
    size_t at; /* in reader.raw: what comes next */
    uint64_t head, tail;
    uint32_t pid;
};

struct feed {
    struct channel *channel;
    const struct recording *recording;
    struct feeding rings[CHANNEL_RINGS];
    struct ring_claims claims;
    uint32_t n_active;
    uint64_t last_deaths;  /* ms: when processes were last looked at */
    uint64_t instructions; /* replay --count: of streams that have ended */
    uint64_t taken;        /* bytes that runtimes took, of rings that are free again */
    uint64_t refused;      /* streams that the recording has not */
    bool damaged;          /* the recording could not be read to its end; the user was told */
    /* A runtime is done with its stream, or (RING_NOT_ENDED) is gone without a word. */
    void (*ended)(void *arg, uint32_t pid, enum ring_ended how, int status);
    void *arg;
};

void feed_open(struct feed *, struct channel *, const struct recording *);
void feed_close(struct feed *);

/* Looks at all rings once. True: something was to do. */
bool feed_look(struct feed *);

/* Bytes of events that runtimes have taken so far. */
uint64_t feed_taken(const struct feed *);

#endif

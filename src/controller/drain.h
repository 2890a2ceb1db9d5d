/* Drain: takes events out of the rings and makes frames of them.
 * Invariant: what leaves a ring is whole events of sane size; a stream's frames follow each other without a gap. */
#ifndef REPRISE_DRAIN_H
#define REPRISE_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/channel_host.h"
#include "controller/file_keeper.h"
#include "controller/log_writer.h"
#include "controller/times.h"
#include "log/channel.h"

/* A ring in use, and the stream that comes through it. */
struct intake {
    bool active;
    bool damaged; /* nonsense was in the ring: what comes is thrown away */
    uint64_t stream;
    uint64_t tail;     /* ours: the one in the ring is for the writer */
    uint64_t position; /* of buf[0] in the stream */
    uint8_t *buf;
    size_t len, cap;
    uint64_t since;        /* when buf[0] came, ms */
    uint64_t timed;        /* ms: see times_note() */
    uint32_t pid;          /* as seen last */
    int pidfd;             /* of that process, or -1 */
    uint64_t nobody_since; /* ms: since when that process is gone; 0: it lives */
    uint64_t ran_before;   /* ns: how long it had run when it was first asked about; see drain_is_one_due() */
};

#define ENDED_KEPT 256

struct drain {
    struct channel *channel;
    struct log_writer *writer;
    struct file_keeper *keeper;
    struct times times;
    struct intake rings[CHANNEL_RINGS];
    struct ring_claims claims;
    uint32_t n_active;
    uint64_t streams;           /* that had events so far */
    uint8_t *seen;              /* bit per stream number: each comes once */
    size_t seen_size;           /* bytes */
    uint32_t ended[ENDED_KEPT]; /* pids of processes that ended lately, in a ring */
    uint32_t n_ended;
    uint64_t last_deaths; /* ms: when processes were last looked at */
    bool discard;         /* recording has stopped: rings are emptied, nothing is kept */
};

void drain_open(struct drain *, struct channel *, struct log_writer *, struct file_keeper *);

/* Looks at the rings once. True: something was there. */
bool drain_look(struct drain *);

/* Whether a process of that number is recorded, or was a short time ago. */
bool drain_knows(const struct drain *, uint32_t pid);

/* Writes everything that was taken out so far, whatever its age. */
void drain_flush(struct drain *);

/* Tells runtimes that nobody takes events any more, and wakes those who wait. */
void drain_stop(struct drain *);

/* Processes that use a ring and live, without `except`. */
unsigned drain_count_alive(struct drain *, uint32_t except);

/* Whether one of them waits for a processor, of which it has had less than `ms` since this was first asked. */
bool drain_is_one_due(struct drain *, uint32_t except, uint64_t ms);

#endif

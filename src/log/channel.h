/* Channel: the memory that controller and runtimes share, for recording and for replay.
 *
 * One memfd: a struct channel, then the bytes of its rings. Each stream under way has a ring. Recording: the runtime writes
 * events, the controller takes them out. Replay: the controller writes, the runtime takes. Only the ring's writer moves head,
 * only its reader moves tail; both count bytes from the start of the stream and never wrap. Readers see head only behind
 * whole events. All futexes are shared ones (no FUTEX_PRIVATE_FLAG).
 *
 * What the other side writes is not to be trusted by the controller: it checks every number before use. */
#ifndef REPRISE_LOG_CHANNEL_H
#define REPRISE_LOG_CHANNEL_H

#include <stdint.h>

#include "log/events.h"

#define CHANNEL_MAGIC 0x32304c4e48435052ull /* "RPCHNL02" */
#define CHANNEL_RINGS 1024                  /* at most */
#define CHANNEL_RINGS_LEAST 4
#define CHANNEL_FILES 32768 /* a power of two; sparse */
#define RING_BYTES (1ul << 20)
#define RING_MAPS 7       /* words */
#define CHANNEL_BITS 1024 /* words */

enum ring_state {
    RING_FREE,
    RING_WANTED, /* replay: a runtime has claimed the ring for `stream`; the controller is to fill it, from byte `tail` of the
                    stream on, and set RING_OPEN */
    RING_OPEN, /* in use */
    RING_CLOSED, /* the writer has written everything: the ring is freed by the controller when it is empty (recording), or
                    by the controller when the runtime has set RING_DONE (replay) */
    RING_DONE,    /* replay: the runtime needs nothing more */
    RING_CLAIMED, /* a runtime is filling in the header: hands off */
    RING_REFUSED, /* replay: there is no such stream */
};

enum ring_ended {
    RING_NOT_ENDED,
    RING_ENDED_PROCESS,  /* with the END event */
    RING_ENDED_EXEC,     /* the process goes on in another stream, with another ring */
    RING_ENDED_CUT,      /* no more events, though the process had not ended: it was killed, or the recording was */
    RING_ENDED_DIVERGED, /* the runtime has said why */
};

struct ring {
    uint32_t state; /* futex */
    uint32_t pid;   /* of the runtime that uses it; 0: not yet known */
    uint64_t stream;
    uint64_t head;   /* bytes written */
    uint64_t tail;   /* bytes taken */
    uint32_t space;  /* futex: the reader counts it up when it has taken something and `writer_waits` is set */
    uint32_t filled; /* futex: the writer counts it up when it has written something and `reader_waits` is set */
    uint32_t writer_waits, reader_waits;
    uint32_t ended;         /* replay: how the stream ended, enum ring_ended */
    int32_t status;         /* RING_ENDED_PROCESS: as wait() gives it */
    uint64_t instructions;  /* replay --count: of this stream */
    uint32_t awaits_output; /* replay: its next output has to wait for those of others */
    uint32_t elsewhere;     /* `pid` is no number that its process knows itself by: it has a PID namespace of its own */
    uint64_t maps[RING_MAPS]; /* recording: bits of the files that are mapped in this address space, or were */
};
_Static_assert(sizeof(struct ring) == 128, "no cache line of two rings");

enum file_state { FILE_FREE, FILE_BUSY, FILE_KEPT, FILE_FAILED };

/* A file that was mapped. The runtime claims an entry (FREE -> BUSY), fills in the identity and sends a descriptor of the file
 * over the socket with struct channel_file_message; the controller copies the file into the store and sets KEPT. */
struct channel_file {
    uint32_t state; /* futex */
    uint32_t reserved;
    uint64_t dev, ino, size, mtime_ns, ctime_ns;
    struct object_name name;
};

struct channel_file_message {
    uint32_t entry;
    uint32_t reserved;
};

#define CHANNEL_CHAOS 1 /* flags */
#define CHANNEL_CHECK 2

struct channel_file_id {
    uint64_t dev, ino;
};

struct channel {
    uint64_t magic;
    uint32_t controller; /* pid */
    uint32_t flags;
    uint32_t doorbell;  /* futex: counted up by a runtime when its ring is half full, wants attention, or ends */
    uint32_t heartbeat; /* counted up by the controller whenever it looks around, at least every 100 ms */
    uint32_t stopped; /* recording has ended (disk full, limit, initial process gone): runtimes go on without writing */
    uint32_t next_ring; /* where to look for a free one: a hint */
    uint64_t next_stream;
    uint64_t out_seq;   /* recording: outputs so far. Replay: outputs repeated so far */
    uint32_t out_futex; /* replay: counted up with out_seq */
    uint32_t out_lock; /* recording: held while a sphere output is written and numbered; 0 free, 1 held, 2 waited for */
    uint32_t shares;   /* the tables of log/shared.h and the areas of ckpt/area.h are there */
    uint32_t n_rings;  /* that there are; less than CHANNEL_RINGS where a resource limit wants it */
    uint32_t freed;    /* futex: the controller counts it up when it has freed a ring and `ring_wanted` is set */
    uint32_t ring_wanted;
    uint64_t ckpt_busy[CHANNEL_RINGS / 64]; /* areas in which something waits for the taker */
    uint32_t ckpt_bell;                     /* futex: counted up when a bit was set */
    uint32_t stop_wanted; /* recording --debug stop-at: it is to be stopped now, and somebody waits for that */
    struct channel_file_id out_ids[3]; /* recording: [1] and [2] are the sphere's standard output and error */
    uint64_t debug_events;             /* recording --debug stop-at: of all streams so far */
    int32_t out_error; /* replay: why an output could not be repeated (an error number), of the first one that could not */
    uint8_t reserved[4096 - 140 - CHANNEL_RINGS / 8];
    /* recording: files that were mapped, or opened for writing, in the sphere; a bit each, by device and inode (writers.h) */
    uint64_t mapped[CHANNEL_BITS], written[CHANNEL_BITS];
    struct channel_file files[CHANNEL_FILES];
    struct ring rings[CHANNEL_RINGS];
};
_Static_assert(sizeof(struct channel) % 4096 == 0, "whole pages");

/* Where a file's entry is looked for first; it is in this slot or in one of the CHANNEL_FILE_PROBES - 1 behind it, round the
 * end. The controller fills in files that it knows at the start, as KEPT; a runtime that uses a KEPT entry sets `reserved`. */
#define CHANNEL_FILE_PROBES 64
static inline uint32_t channel_file_slot(uint64_t dev, uint64_t ino, uint64_t mtime_ns) {
    uint64_t h = dev * 0x9e3779b97f4a7c15ull ^ ino * 0xc2b2ae3d27d4eb4full ^ mtime_ns * 0x165667b19e3779f9ull;
    return (uint32_t)((h ^ h >> 29) & (CHANNEL_FILES - 1));
}

/* Where the bytes of a ring are; of ring n_rings: where the channel ends. */
static inline uint64_t channel_ring_offset(uint32_t i) { return sizeof(struct channel) + (uint64_t)i * RING_BYTES; }
#define CHANNEL_BYTES (sizeof(struct channel) + CHANNEL_RINGS * RING_BYTES)

#endif

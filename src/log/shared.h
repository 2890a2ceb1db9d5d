/* Memory that processes of a sphere share: tables behind the rings of the channel's memfd, sparse.
 *
 * A page of a shared object has one owner at a time, an address space named by its stream; only the owner may touch it. Each
 * change of owner counts the page's version up. Recording: owners hand pages over as requests come. Replay: versions alone are
 * used, processes wait for the one that the log names. docs/architecture.md, "Memory shared between processes". */
#ifndef REPRISE_LOG_SHARED_H
#define REPRISE_LOG_SHARED_H

#include "log/channel.h"

#define SHARED_CHUNK_PAGES 512ul
#define SHARED_CHUNKS 16384ul /* a power of two; 32 GB of shared memory */
#define SHARED_OBJECTS 4096ul /* a power of two */
#define SHARED_REQUESTS 56
#define SHARED_STREAMS (1ul << 22) /* in `ended` */
#define SHARED_PROBES 256ul

/* An owner: stream + 1, ring, and whether it has yet to take what it was given; 0: nobody. */
#define OWNER(stream, ring) (((stream) + 1) << 16 | (uint64_t)(ring) << 4)
#define OWNER_GIVEN 1ull
#define OWNER_NOBODY 2ull /* given up, by a process that was stopped */
#define OWNER_VALUES 4ull /* nobody's: each access is logged (shared_values.h) */
#define OWNER_STREAM(owner) (((owner) >> 16) - 1)
#define OWNER_RING(owner) ((uint32_t)((owner) >> 4 & 0xfff))

struct shared_page {
    uint64_t owner;    /* OWNER; 0: as the chunk's `first` says */
    uint64_t since_ns; /* monotonic clock, when it was taken */
    uint32_t version;  /* futex, replaying */
    uint32_t moves;    /* futex, recording: counted up whenever it may be somebody else's */
    uint32_t waiters;
    uint16_t lock;         /* OWNER_VALUES: ring + 1 of who has it */
    int16_t heat;          /* how often it has changed hands lately */
    uint16_t last;         /* ring + 1 of who was here last */
    uint16_t streak;       /* OWNER_VALUES: how often in a row */
    uint16_t uses, visits; /* OWNER_VALUES: accesses, and how often they were another process's; as far as one counts */
    uint16_t cold; /* for how many changes of hands it was left alone last, because being nobody's was not worth it */
    uint16_t reserved;
    uint32_t outsiders; /* processes that are not of the sphere may change it: OWNER_VALUES whenever it can be */
    uint32_t handed;    /* the version that its last RELEASE has made, which is in a log for certain */
};

enum chunk_state { CHUNK_FREE, CHUNK_BUSY, CHUNK_USED };

struct shared_chunk { /* SHARED_CHUNK_PAGES pages of one object; found by hash */
    uint32_t state, reserved;
    uint64_t object, number;
    uint64_t first; /* OWNER of all pages that never changed hands; 0: nobody */
};

struct shared_object { /* a file, found by hash; its slot is also the place of its contents in a replay */
    uint32_t state;    /* futex; CHUNK_* */
    uint32_t ready;    /* futex; replay: the contents are there */
    uint64_t object;
};

/* A request: index of the page (23 bits), ring (10), stream + 1 (31 low bits) of who wants it. 0: none. */
#define REQUEST(index, ring, stream) \
    ((uint64_t)(index) << 41 | (uint64_t)(ring) << 31 | (((stream) + 1) & 0x7fffffffull))
#define REQUEST_INDEX(r) ((r) >> 41)
#define REQUEST_RING(r) ((uint32_t)((r) >> 31 & 0x3ff))
#define REQUEST_STREAM(r) ((r)&0x7fffffffull) /* plus one, low bits */

struct shared_sharer { /* recording: an address space that takes part, by its ring */
    uint64_t stream;
    uint32_t pid;
    uint32_t life;     /* thread id of its pager; the kernel adds FUTEX_OWNER_DIED when that is no more. 0: none yet */
    uint32_t bell;     /* futex: counted up with each request */
    uint32_t ended;    /* its stream has its last event: what it owns may be taken */
    uint32_t sleeps;   /* the pager waits for the bell */
    uint32_t stopping; /* futex: shared_stop.c */
    uint64_t request[SHARED_REQUESTS];
    uint64_t session_ns; /* monotonic clock, since when it has not had a run with all the pages that it needs */
    uint32_t stopped;    /* it has no page, and may not come to take one */
    uint32_t reserved;
    uint64_t reserved2[2];
};
_Static_assert(sizeof(struct shared_sharer) == 512, "a power of two");

struct shared_tables {
    uint64_t progress;  /* replay: counted up with each page that changes hands and each stream that ends */
    uint64_t n_objects; /* used in `objects` */
    uint64_t stopping;  /* recording: how many are about to send signals that stop (shared_stop.h) */
    uint64_t cut;       /* replay: streams that stop before their process has ended */
    uint8_t reserved[4096 - 32];
    struct shared_sharer sharers[CHANNEL_RINGS];
    struct shared_object objects[SHARED_OBJECTS];
    struct shared_chunk chunks[SHARED_CHUNKS];
    uint64_t ended[SHARED_STREAMS / 64]; /* streams that have their last event */
    struct shared_page pages[SHARED_CHUNKS * SHARED_CHUNK_PAGES];
};

#define SHARED_OFFSET ((CHANNEL_BYTES + 0xfffffull) & ~0xfffffull)

/* Replay: contents of shared files, each with as much room as anybody may want. */
#define SHARED_ROOM (1ull << 36)
#define SHARED_CONTENTS(slot) ((1 + (uint64_t)(slot)) * SHARED_ROOM)
#define SHARED_FILE_BYTES SHARED_CONTENTS(SHARED_OBJECTS)
_Static_assert(SHARED_OFFSET + sizeof(struct shared_tables) < SHARED_CONTENTS(0), "tables end before contents");
_Static_assert(SHARED_CHUNKS *SHARED_CHUNK_PAGES <= 1 << 23, "fits a request");
_Static_assert(CHANNEL_RINGS <= 1024, "fits a request");

#endif

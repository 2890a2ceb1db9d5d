/* Checkpoint areas: memory in which a runtime gives its checkpoints to the controller.
 *
 * They lie behind everything else in the channel's memfd, one for each ring, sparse: nothing until a checkpoint is taken. An
 * area is a header, a table of entries, and one page of payload for each entry. For each checkpoint the runtime (the writer)
 * starts over with entry 0:
 *
 *     AREA_IDLE   -> the runtime sets AREA_BUSY, head = tail = 0, and puts entries:
 *     BEGIN          struct ckpt_place
 *     DROPPED        struct ckpt_range, as many as `len` says; any number of entries
 *     PAGE           `address`, flags AREA_FILE_BASE: a modified page; in address order
 *     STATE          a piece of the state; in order; before or among the pages
 *     END            -> the controller commits the checkpoint and sets AREA_IDLE
 *     GIVE_UP        -> or throws it away
 *
 * Entries i, i + places, ... share a place: the writer waits while head - tail == places. The controller takes entries as they come
 * (ckpt/taker.h), so that comparing and writing happen there and not in the program. The last checkpoint of a process, which has nothing
 * to do but to wait for it, needs few places: they stay in the processors' caches, and the kernel need not find memory for more.
 * What a runtime that dies leaves half done is thrown away when the next one begins there, or at the end. What a runtime writes is not trusted. */
#ifndef REPRISE_CKPT_AREA_H
#define REPRISE_CKPT_AREA_H

#include "ckpt/place.h"
#include "log/shared.h"

#define AREA_ENTRIES 16384u /* 64 MB of pages: a checkpoint of a program that writes 50 MB/s fits as a whole */
#define AREA_LAST_ENTRIES 1024u

enum area_state {
    AREA_IDLE,
    AREA_BUSY,
    AREA_TRIMMED, /* for a moment: the taker gives memory back that was not used for long */
};
enum area_kind { AREA_BEGIN = 1, AREA_DROPPED, AREA_PAGE, AREA_STATE, AREA_END, AREA_GIVE_UP };
#define AREA_FILE_BASE 1u /* flags of AREA_PAGE: CKPT_BASE_FILE */

struct area_entry {
    uint64_t address; /* AREA_PAGE */
    uint16_t kind, flags;
    uint32_t len; /* bytes of payload that count */
};
_Static_assert(sizeof(struct area_entry) == 16, "shared");

struct ckpt_area {
    uint32_t state;  /* enum area_state; futex: woken when it becomes AREA_IDLE */
    uint32_t space;  /* futex: the taker counts it up when it has taken something and `waits` is set */
    uint64_t stream; /* whose checkpoints these are: set by the runtime with AREA_BUSY */
    uint64_t head;   /* entries put */
    uint64_t tail;   /* entries taken */
    uint32_t waits;
    uint32_t serial;  /* counted up with each checkpoint */
    uint32_t failed;  /* the taker could not store: no further checkpoints are wanted */
    uint64_t took_us; /* what the taker needed for the last one, CPU time: the interval stretches with it */
    uint32_t places;  /* at most AREA_ENTRIES: set by the runtime with AREA_BUSY */
    uint8_t reserved[4096 - 60];
    struct area_entry entries[AREA_ENTRIES];
    uint8_t pages[AREA_ENTRIES][CKPT_PAGE];
};
_Static_assert(sizeof(struct ckpt_area) % 4096 == 0, "whole pages");

#define AREA_OFFSET(ring) (SHARED_FILE_BYTES + (uint64_t)(ring) * sizeof(struct ckpt_area))
#define AREA_FILE_BYTES AREA_OFFSET(CHANNEL_RINGS) /* of the memfd, all in all */

#endif

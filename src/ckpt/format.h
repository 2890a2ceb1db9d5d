/* Checkpoints on disk; docs/formats.md, "Checkpoints", is the normative text.
 *
 * DIR/ckpt-STREAM.data        slots of 64 bytes, from the start of the file on
 * DIR/ckpt-STREAM.FIRST-LAST  metadata of the checkpoint that stands for those numbered FIRST to LAST; never changed
 * DIR/ckpt-STREAM.new         metadata being written */
#ifndef REPRISE_CKPT_FORMAT_H
#define REPRISE_CKPT_FORMAT_H

#include "ckpt/place.h"

#define META_MAGIC 0x31544b4350525052ull /* "RPRPCKT1" */
#define META_VERSION 1
#define META_ADDRESS_END (1ull << 56) /* no address of a program is as high */
#define META_ZERO_SLOT UINT32_MAX     /* the block is all zero and has no slot */

/* Then: n_dropped struct ckpt_range, n_pages struct meta_page, n_blocks struct meta_block, state_len bytes. */
struct meta_head {
    uint64_t magic;
    uint32_t version;
    uint32_t level;
    uint64_t stream;
    uint64_t first, last;
    struct ckpt_place place;
    uint64_t n_dropped, n_pages, n_blocks, state_len;
    uint64_t saved;     /* blocks that all checkpoints up to this one had when they were taken, together */
    uint64_t body_hash; /* XXH3 64 of all that follows the head */
    uint64_t reserved;
    uint64_t head_hash; /* XXH3 64 of the bytes above */
};
_Static_assert(sizeof(struct meta_head) == 136, "on disk");

struct meta_page { /* ascending by address */
    uint64_t address;
    uint64_t blocks; /* bit i: the block at i * 64 is stored; never 0 */
    uint32_t first;  /* its first block in the table of blocks; the others follow, ascending by address */
    uint32_t reserved;
};
_Static_assert(sizeof(struct meta_page) == 24, "on disk");

struct meta_block {
    uint32_t slot;  /* or META_ZERO_SLOT */
    uint32_t check; /* low half of XXH3 64 of the 64 bytes; 0 with META_ZERO_SLOT */
};
_Static_assert(sizeof(struct meta_block) == 8, "on disk");

#endif

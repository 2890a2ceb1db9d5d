/* reprise dump --checkpoints: a line for each checkpoint that can be restored, with a hash of all that it tells of memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "ckpt/store.h"
#include "cli/cli.h"
#include "cli/dump_checkpoints.h"

/* Address, number and contents of every block. False: the user was told. */
static bool memory_hash(const struct ckpt_store *s, size_t i, uint64_t *hash) {
    static struct ckpt_restored page;
    struct ckpt_cursor c;
    XXH3_state_t *state = XXH3_createState();
    if (!state) return complain("out of memory"), false;
    XXH3_64bits_reset(state);
    for (ckpt_pages(s, i, &c); ckpt_next(&c, &page);)
        for (uint64_t left = page.blocks; left; left &= left - 1) {
            uint32_t block = (uint32_t)__builtin_ctzll(left);
            XXH3_64bits_update(state, &page.address, sizeof page.address);
            XXH3_64bits_update(state, &block, sizeof block);
            XXH3_64bits_update(state, page.bytes + block * CKPT_BLOCK, CKPT_BLOCK);
        }
    *hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    if (c.why[0]) complain("%s", c.why);
    return !c.why[0];
}

static bool dump_stream(const char *dir, uint64_t stream) {
    char why[WHY_MAX];
    struct ckpt_store *s = ckpt_open(dir, stream, why);
    if (!s) return complain("%s", why), false;
    bool fine = !ckpt_damage(s)[0];
    if (!fine) complain("%s", ckpt_damage(s));
    for (size_t i = 0; i < ckpt_count(s); i++) {
        struct ckpt_info info;
        uint64_t hash;
        if (!ckpt_info(s, i, &info) || !memory_hash(s, i, &hash)) {
            fine = false;
            continue;
        }
        printf("checkpoint %" PRIu64 ".%" PRIu64 "-%" PRIu64 ": level %u event %" PRIu64 " ticks %" PRIu64
               " pages %" PRIu64 " blocks %" PRIu64 " memory %016" PRIx64 "\n",
               stream, info.first, info.last, info.level, info.place.event, info.place.ticks, info.pages, info.blocks,
               hash);
    }
    ckpt_close(s);
    return fine;
}

bool dump_checkpoints(const char *dir) {
    char why[WHY_MAX];
    uint64_t *streams;
    size_t n;
    if (!ckpt_streams(dir, &streams, &n, why)) return complain("%s", why), false;
    bool fine = true;
    for (size_t i = 0; i < n; i++) fine = dump_stream(dir, streams[i]) && fine;
    free(streams);
    return fine;
}

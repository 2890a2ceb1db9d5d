/* Hash map from 64-bit keys to 64-bit values: one writer under a lock, readers without. Values are never 0. */
#ifndef REPRISE_MAP_H
#define REPRISE_MAP_H

#include "inproc/types.h"

struct map_slot {
    uint64_t key;   /* 0 = free */
    uint64_t value; /* 0 = deleted */
};

struct map {
    uint64_t mask, used; /* used: slots with a key, deleted ones included */
    struct map_slot slots[];
};

static inline size_t map_bytes(uint64_t entries) { return sizeof(struct map) + entries * sizeof(struct map_slot); }

/* `m` is zeroed memory of map_bytes(entries); entries is a power of two. */
void map_init(struct map *m, uint64_t entries);
uint64_t map_get(const struct map *m, uint64_t key);
/* value 0 deletes. False: too full, nothing was done; copy into a larger one first. */
bool map_put(struct map *m, uint64_t key, uint64_t value);
void map_copy(struct map *to, const struct map *from);
/* Entries that a larger copy should have. */
uint64_t map_grown(const struct map *m);

#endif

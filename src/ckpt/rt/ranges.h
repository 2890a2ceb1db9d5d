/* Ranges of addresses: ascending, disjoint, not touching each other. */
#ifndef REPRISE_CKPT_RANGES_H
#define REPRISE_CKPT_RANGES_H

#include "ckpt/place.h"
#include "inproc/types.h"

struct ranges {
    struct ckpt_range *list; /* memory of the runtime; grows */
    size_t n, room;
    size_t most; /* beyond this, neighbours become one with the gap between them; 0: no limit */
};

void ranges_add(struct ranges *r, gaddr start, gaddr end);
/* The same, behind all that there is. */
void ranges_append(struct ranges *r, gaddr start, gaddr end);
/* Index of the first that ends above addr; n: none. */
size_t ranges_above(const struct ranges *r, gaddr addr);
bool ranges_hold(const struct ranges *r, gaddr addr);
static inline void ranges_clear(struct ranges *r) { r->n = 0; }

#endif

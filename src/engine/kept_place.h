/* Where kept regions (kept.h) lie: where there is room when the first process needs one. Its image says where that was, and
 * later processes put it there again. Two files whose regions overlap do not know of each other until some process maps both:
 * the second then gets another place, and a new image. */
#ifndef REPRISE_KEPT_PLACE_H
#define REPRISE_KEPT_PLACE_H

#include "engine/cache.h"

struct kept_place {
    uint64_t base, size;
};

/* Whether a region for f may lie there: images say so, but who says that they are right? */
bool kept_place_is_valid(const struct kept_place *p, const struct kept_file *f);

/* A place where no region is now; `not`: where it was found not to fit, or 0. Size 0: there is none. Caller holds cache_lock. */
struct kept_place kept_place_find(const struct kept_file *f, uint64_t not );

#endif

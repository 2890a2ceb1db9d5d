/* PAGEMAP_SCAN of /proc/self/pagemap (Linux 6.7): which pages are there, without a word for each that is not. Defined here,
 * because it is newer than the headers of many systems. */
#ifndef REPRISE_PAGEMAP_SCAN_H
#define REPRISE_PAGEMAP_SCAN_H

#include <linux/ioctl.h>

#include "inproc/types.h"

struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct scan_region {
    uint64_t start, end, categories;
};
#define SCAN_IOCTL _IOWR('f', 16, struct scan)
/* Flags: PM_SCAN_WP_MATCHING, and PM_SCAN_CHECK_WPASYNC: memory that is not registered fails, where it would be left out. */
#define SCAN_PROTECT 3
enum { IS_WRITTEN = 2, IS_FILE = 4, IS_PRESENT = 8, IS_SWAPPED = 16, IS_ZERO = 32 };

/* Behind a scan that found n regions: where to go on. The kernel fills the vector 512 regions at a time, and walk_end may be
 * where the last but one of these walks ended: regions behind it have been told all the same. */
static inline uint64_t scanned_up_to(const struct scan *s, long n) {
    if ((uint64_t)n < s->vec_len) return s->end;
    return MAX(s->walk_end, ((const struct scan_region *)s->vec)[n - 1].end);
}

#endif

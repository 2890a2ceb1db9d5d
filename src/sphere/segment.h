/* Segment registers. The program's gs is not the processor's, which belongs to the runtime. */
#ifndef REPRISE_SEGMENT_H
#define REPRISE_SEGMENT_H

#include "engine/tblock.h"

#define GUEST_CS 0x33
#define GUEST_SS 0x2b

/* Loads the program's gs: selector and base. False: there is no such data segment. */
bool segment_load_gs(struct tblock *t, uint16_t selector);
/* modify_ldt(): whether it only reads the table, or the default one. */
static inline bool segment_reads_ldt(const uint64_t a[6]) { return (int)a[0] == 0 || (int)a[0] == 2; }

/* What the kernel keeps for a thread, beside bases; at replay R-threads share a kernel thread. */
struct selectors {
    uint16_t ds, es, fs;
};
struct selectors segment_selectors(void);
/* Also sets fs and its base. */
void segment_set_selectors(const struct selectors *s, uint64_t fs_base);

/* Far pointers in memory may have offsets of 64 bits (Intel). */
bool segment_has_wide_pointers(void);

#endif

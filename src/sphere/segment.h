/* Segment registers. The program's gs is not the processor's, which belongs to the runtime. */
#ifndef REPRISE_SEGMENT_H
#define REPRISE_SEGMENT_H

#include "engine/tblock.h"

#define GUEST_CS 0x33
#define GUEST_SS 0x2b

/* Loads the program's gs: selector and base. False: there is no such data segment. */
bool segment_load_gs(struct tblock *t, uint16_t selector);
/* ss is not the processor's either: a segment of the LDT that goes away would fault in the runtime. In 64-bit code it has no other
 * effect than this fault. */
enum segment_state { SEGMENT_GOOD, SEGMENT_BAD, SEGMENT_NOT_PRESENT };
enum segment_state segment_is_stack(uint16_t selector);
static inline uint16_t segment_ss(const struct tblock *t) { return t->own_ss ? t->own_ss : GUEST_SS; }
enum segment_state segment_load_ss(struct tblock *t, uint16_t selector);
/* The LDT has changed: threads that have lost what they have in ss get a signal, wherever they are. */
void segment_tell_losers(void);
struct siginfo_raw;
/* It has come: becomes the one that the program is to see. */
bool segment_is_loss(struct siginfo_raw *info);
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

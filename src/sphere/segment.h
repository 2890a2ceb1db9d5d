/* Segment registers. The program's gs is not the processor's, which belongs to the runtime. */
#ifndef REPRISE_SEGMENT_H
#define REPRISE_SEGMENT_H

#include "engine/tblock.h"

#define GUEST_CS 0x33
#define GUEST_SS 0x2b

/* Loads the program's gs: selector and base. False: there is no such data segment. */
bool segment_load_gs(struct tblock *t, uint16_t selector);
/* Far pointers in memory may have offsets of 64 bits (Intel). */
bool segment_has_wide_pointers(void);

#endif

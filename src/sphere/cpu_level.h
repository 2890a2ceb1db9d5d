/* `record --cpu v2|v3`: the program sees a processor with the features of x86-64-v2 or -v3 and none beyond, so that its
 * recording replays on any machine that has those. */
#ifndef REPRISE_CPU_LEVEL_H
#define REPRISE_CPU_LEVEL_H

#include "log/events.h"

extern int cpu_level; /* 2 or 3; 0: the machine as it is */

/* Which extended state that processor has, of what this one has (0: it has no xsave), and its size. */
uint64_t cpu_level_xcr0(uint64_t xcr0);
uint32_t cpu_level_xsave_size(uint32_t size);
/* Changes what cpuid (with this leaf and subleaf) or xgetbv answered. */
void cpu_level_mask(uint16_t which, uint32_t leaf, uint32_t subleaf, struct ev_insn *result);

#endif

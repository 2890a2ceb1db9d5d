/* The processor, as far as programs can see it: what a recording needs of the machine that replays it. */
#ifndef REPRISE_CPU_H
#define REPRISE_CPU_H

#include <stdbool.h>
#include <stddef.h>

enum cpu_level { CPU_ALL, CPU_V2, CPU_V3 };

struct cpu {
    char vendor[16], model[64];
    char flags[2048]; /* instruction sets, by their names in /proc/cpuinfo, a blank between */
};

/* This machine's, without what `level` hides. */
void cpu_read(struct cpu *, enum cpu_level level);

/* Whether all flags of `wanted` are in `have`; else the missing ones are put into `missing`. */
bool cpu_has_all(const char *have, const char *wanted, char *missing, size_t cap);

#endif

/* Mappings as a program sees them: what the kernel says of its memory, in the pieces that the program has made. */
#ifndef REPRISE_PROC_MAPS_H
#define REPRISE_PROC_MAPS_H

#include "inproc/types.h"
#include "sphere/sys/proc_text.h"

struct tracee;

/* maps or smaps, from an open file of the kernel's: of this process, or of one that is stopped for its tracer (`whose`). */
void maps_write(int from, struct text *out, bool details, struct tracee *whose);
/* Of another process, and numa_maps: without what lies in the runtime's windows. */
void maps_write_without_runtime(int from, struct text *out);

#define MAPS_NAME_CAP 4200

/* The name, at most MAPS_NAME_CAP bytes, and the place of what the kernel has at addr. `path`: a file "maps". False: nothing. */
bool maps_at(const char *path, gaddr addr, char *name, gaddr *start, gaddr *end);

struct maps_link { /* an entry of map_files */
    gaddr start, end;
    gaddr kernel_start, kernel_end; /* the kernel has this one, which shows the same file */
};

/* Entries of this process, in order: visit says whether to go on. */
void maps_each_link(bool (*visit)(const struct maps_link *l, void *arg), void *arg);

/* Where this process has shared anonymous memory with this inode mapped; 0: nowhere. */
gaddr maps_anonymous(uint64_t ino);

/* Into how many pieces more than the program made protections of ours have cut the System V segment `id` in a process. */
uint64_t maps_segment_cuts(int pid, int id);

#endif

/* The kernel's vDSO and its data pages, moved to where they do not depend on address randomisation. */
#ifndef REPRISE_VDSO_H
#define REPRISE_VDSO_H

#include "inproc/types.h"

/* Address of the vDSO that the program shall see; 0: none. Unless `shown`, it is the runtime's alone. */
gaddr vdso_move(const uint64_t *auxv, bool shown, const char *told);
/* For the runtime behind an execve, which is `told` it: an option, or nothing. */
size_t vdso_to_text(char *out, size_t cap);

/* Maps the vDSO of src/vdso, whose functions are ordinary system calls, for the program to see. */
gaddr vdso_map_own(void);

/* The vDSO's own clock_gettime, if it is the runtime's; NULL: there is none. It uses no vector registers. */
extern int (*vdso_clock_gettime)(int clock, int64_t out[2]);

#endif

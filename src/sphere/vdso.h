/* The kernel's vDSO and its data pages, moved to where they do not depend on address randomisation. */
#ifndef REPRISE_VDSO_H
#define REPRISE_VDSO_H

#include "inproc/types.h"

/* Address of the vDSO that the program shall see; 0: none. */
gaddr vdso_move(const uint64_t *auxv);

#endif

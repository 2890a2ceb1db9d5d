/* Closing many descriptors of the calling thread's table, also where the kernel (before 5.9) or a container's filter has no
 * close_range(). */
#ifndef REPRISE_FDS_H
#define REPRISE_FDS_H

#include "inproc/types.h"

/* first to last, both included. */
void fds_close(uint32_t first, uint32_t last);
/* A thread of ours that has a copy of the program's table gives all of it up: it would keep the program's pipes open. */
void fds_close_all(void);

#endif

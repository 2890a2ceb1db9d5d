/* RLIMIT_AS and RLIMIT_DATA as the program set them. The kernel would count the runtime's own memory, too; so its limits are
 * made as wide as may be, and the program's are kept by the address space, which knows what is the program's. The other
 * limits are the kernel's business; but the stack is mapped in full, so when its limit rises there has to be more of it. */
#ifndef REPRISE_LIMITS_H
#define REPRISE_LIMITS_H

#include "inproc/types.h"

#define LIMIT_INFINITY UINT64_MAX
#define LIMITS_TEXT 80 /* the most that limits_to_text writes */

struct limit {
    uint64_t soft, hard;
};

struct process;

struct limits {
    struct limit as, data;
};

/* text: from limits_to_text before execve; NULL: what the kernel has is the program's. */
void limits_start(struct limits *l, const char *text);
void limits_to_text(const struct limits *l, char *out, size_t cap);
/* The call, if it succeeds, sets the limit of the stack to this; 0: it is another call. */
uint64_t limits_new_stack(const struct process *p, uint64_t nr, const uint64_t a[6]);
/* The kernel gets the program's own, for a program that runs without us. */
void limits_to_kernel(const struct limits *l);

#endif

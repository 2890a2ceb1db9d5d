/* Scratch: private memory for what a waiting system call writes.
 * A thread that waits in a call has given its turn away. What the kernel writes meanwhile must not be seen by the threads that
 * run: so the call is issued with copies of its output arguments, and what it wrote reaches the program when the thread has its
 * turn again. Each thread has scratch memory of its own in its slot; only the thread itself uses it, one call at a time. */
#ifndef REPRISE_SCRATCH_H
#define REPRISE_SCRATCH_H

#include "sphere/gate.h"

struct scratch_area;

struct scratch { /* one call; on the caller's stack */
    struct scratch_area *area;
    uint64_t program[6];  /* arguments as the program gave them */
    uint64_t replaced[6]; /* as they were issued */
};

/* Replaces pointers in a[] (and in copies of vectors and message heads) by pointers to private copies. What the kernel reads
 * there is copied. False: a[] is untouched, the call is to be issued as it is: it has no outputs, or unknown ones, or some that
 * the program cannot write to, in which case the kernel shall say so before it consumes anything. */
bool scratch_begin(struct scratch *s, struct tblock *t, uint64_t nr, uint64_t a[6]);

/* After a scratch_begin that was true: copies what the call wrote, by its row and `ret`, to where the program wanted it and
 * restores a[]. `ret`, or -EFAULT if the program's memory has gone. GATE_ABORTED: nothing is copied. */
long scratch_end(struct scratch *s, struct tblock *t, uint64_t nr, uint64_t a[6], long ret);

#endif

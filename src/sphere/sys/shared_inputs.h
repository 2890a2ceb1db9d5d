/* What a call reads from memory that processes share. The kernel can only read pages that are ours, and they stay ours only as
 * long as the turn does: what a call reads that may wait is copied first. */
#ifndef REPRISE_SHARED_INPUTS_H
#define REPRISE_SHARED_INPUTS_H

#include "sphere/gate.h"

struct shared_inputs {
    uint64_t a[6]; /* as the program gave them */
    struct bounce *bounce;
    uint64_t acquired; /* pages, when the call was made */
};

/* Before a call, with the turn. may_wait: others may have the turn while the call is under way. Changes arguments. */
void shared_inputs_begin(struct shared_inputs *in, uint64_t nr, uint64_t a[6], bool may_wait);
/* Restores them. True: the call failed because a page went away meanwhile, and has to be made again. */
bool shared_inputs_end(struct shared_inputs *in, uint64_t nr, uint64_t a[6], long ret);

/* A call that is made at once, with the turn: all that it reads or writes is ours. */
void shared_hold_arguments(uint64_t nr, const uint64_t a[6]);

/* A wait without end for a robust mutex (its word names the owner), and the same for a tenth of a second. */
struct shared_pause {
    int64_t time[2];
};
bool shared_is_robust_wait(uint64_t nr, const uint64_t a[6]);
void shared_pause_futex(struct shared_pause *p, const uint64_t a[6], uint64_t b[6]);

/* Whether the call may write to memory that is shared. */
bool shared_may_be_written(uint64_t nr, const uint64_t a[6]);
/* All that the call has written, in the program's memory, is ours. */
void shared_hold_written(uint64_t nr, const uint64_t a[6], long ret);

#endif

/* Checkpoints while recording: when and where they are taken, and what marks the place in the stream (CHECKPOINT).
 *
 * The R-thread that has the turn takes them, in front of an instruction: at a tick point, behind a call, or instead of a call or
 * a fault, which it then tries again. All others wait then, for the turn or in a call. Memory is saved by ckpt/rt/save.h. Left out:
 * processes that share memory with others or that change files which they have mapped, filters (seccomp), tracees, and moments at which a
 * vfork() child is there. */
#ifndef REPRISE_CHECKPOINT_H
#define REPRISE_CHECKPOINT_H

#include "sphere/thread.h"

extern bool checkpoint_is_on;

/* A stream begins: its first event is written. */
void checkpoint_start(void);

/* t may lose the turn: what is in its kernel thread's registers is kept where others can see it. Not `all`: vector and x87
 * registers, which take longer than a short call, are only given to the log when t has the turn again, and only if a checkpoint
 * was taken meanwhile (EXTENDED): nobody needs them before. */
void checkpoint_park(struct thread *t, bool all);
/* t has the turn again, and owes. */
void checkpoint_pay(struct thread *t);
/* A thread is about to be made: it begins with the registers of its maker. */
void checkpoint_park_new(struct thread *child, uint64_t fs_base);
/* t has ended. */
void checkpoint_forget(struct thread *t);
/* t is about to write events of one instruction. */
void checkpoint_op(struct thread *t);

/* t stands where an event with these flags can be. True: a checkpoint was due and is taken. */
bool checkpoint_consider(struct thread *t, uint8_t flags);
/* The same when the process is about to end; why: CHECKPOINT_*. */
bool checkpoint_at_end(struct thread *t, uint8_t flags, uint32_t why);

/* At most so many of n ticks until the next look at the clock. */
uint64_t checkpoint_budget(uint64_t n);

#endif

/* R-threads of a replay, as coroutines of one kernel thread. */
#ifndef REPRISE_SCHEDULE_H
#define REPRISE_SCHEDULE_H

#include "sphere/thread.h"

/* The calling kernel thread runs t from now on. */
void schedule_start(struct thread *t);
/* A new R-thread, suspended, which will start with entry(); its vector and x87 registers are the caller's. */
void schedule_add(struct thread *t, void (*entry)(void), uint64_t fs_base);
/* Suspends the calling R-thread and goes on with `to`. Returns when somebody switches back. */
void schedule_switch(struct thread *to);
/* The same, and the calling R-thread never goes on. */
void schedule_leave(struct thread *to) __attribute__((noreturn));
uint64_t schedule_fs_base(void);
/* Of a suspended R-thread: what it goes on with. */
void schedule_set_registers(struct thread *t, const uint8_t *extended, uint64_t fs_base);

/* Recording: keeps what is in the calling kernel thread's registers, for t: itself, or a thread that is about to be made.
 * extended: vector and x87 registers, too. */
void schedule_park(struct thread *t, uint64_t fs_base, bool extended);
/* Recording: t has ended. */
void schedule_forget(struct thread *t);
/* Of a suspended R-thread. */
const uint8_t *schedule_extended_of(const struct thread *t, uint64_t *fs_base);

#endif

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
/* Of a suspended R-thread. */
const uint8_t *schedule_extended_of(const struct thread *t, uint64_t *fs_base);

#endif

/* Replay: inputs come from the log; everything is compared with it.
 *
 * All R-threads of a process are run by one kernel thread, which changes from one to the other where the log says so: there is
 * no parallelism to be got wrong, and a fork of the process is a copy of all of it. */
#ifndef REPRISE_REPLAY_H
#define REPRISE_REPLAY_H

#include "sphere/thread.h"

/* Builds the image that the stream starts with and runs it. Does not return. */
void replay_start(struct thread *t, uint64_t stream) __attribute__((noreturn));

/* For the debugger: how far the R-thread may run, anew. */
void replay_set_budget(struct thread *t);

#endif

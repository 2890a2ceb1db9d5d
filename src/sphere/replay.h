/* Replay: inputs come from the log; everything is compared with it.
 *
 * All R-threads of a process are run by one kernel thread, which changes from one to the other where the log says so: there is
 * no parallelism to be got wrong, and a fork of the process is a copy of all of it. */
#ifndef REPRISE_REPLAY_H
#define REPRISE_REPLAY_H

#include "log/snapshot.h"
#include "sphere/thread.h"

/* Builds the image that the stream starts with and runs it. Does not return. */
void replay_start(struct thread *t, uint64_t stream) __attribute__((noreturn));

/* For a process that begins in the middle (restore.h): what its suspended R-threads begin with, and the one that runs. */
void replay_enter_turn(void);
void replay_enter_call(void);
void replay_enter_stop(void);
void replay_go_on(struct thread *t) __attribute__((noreturn));
/* Maps what a recording says was mapped. */
struct ev_map;
void replay_restore_map(struct thread *t, const struct ev_map *v, uint32_t birth);
/* The same for a mapping of the shared object with this number; what is owned of it is known. */
void replay_restore_shared(struct thread *t, const struct snapshot_region *r, bool is_twice);

/* An R-thread whose process was killed while it ran is stepped to its end (replay_killed.c): whether t is, and whether that is what
 * an instruction of tb's is to be seen for. engine_host.debug, where nobody debugs. */
bool replay_is_seeking(const struct thread *t);
bool replay_seeks_death(struct tblock *tb);
void replay_step_killed(struct tblock *tb);

/* For the debugger: how far the R-thread may run, anew. */
void replay_set_budget(struct thread *t);

#endif

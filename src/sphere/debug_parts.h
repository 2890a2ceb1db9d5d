/* The parts of the debugger's agent for each other: debug.c (places, talking to the timeline, running), debug_access.c (what is
 * watched). */
#ifndef REPRISE_DEBUG_PARTS_H
#define REPRISE_DEBUG_PARTS_H

#include "engine/decode.h"
#include "log/worker.h"
#include "sphere/thread.h"

/* ---- debug.c ---- */

extern struct worker_slot *debug_slot;
extern struct worker_run debug_run; /* what the timeline has asked for */
extern uint64_t debug_hits;         /* of break- and watchpoints, in this run */

struct worker_place debug_place(const struct thread *t);
/* The R-thread is looked at here: whether it has moved is seen by comparing with this. */
void debug_see(struct thread *t);
/* At the next instruction boundary. */
void debug_stop_soon(enum worker_reason why);
void debug_remember_hit(struct worker_hit hit);

/* ---- debug_access.c ---- */

/* The program's instruction at pc. */
bool debug_decode(struct insn *in, gaddr pc);
bool access_is_under_way(void);
bool access_is_coming(void); /* the page has to come from another process first */
/* The run has stopped while a string instruction was partly done, until it goes on. */
bool access_stops_inside(void);
void access_goes_on(void);
/* An access is over, or events have been taken. True: the run stops. */
bool access_end(struct thread *t, bool by_op);

#endif

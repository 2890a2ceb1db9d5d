/* The parts of the debugger's agent for each other: debug.c (places, talking to the timeline, running), debug_access.c (what is
 * watched), debug_past.c (what is remembered of instructions). */
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
/* An access has begun, but its instruction is still to come: the tick budget has ended in front of it, or it has faulted. */
bool access_is_undone(const struct thread *t);
/* It will begin anew, under the same number. */
void access_undo(void);
/* The run has stopped while a string instruction was partly done, until it goes on. */
bool access_stops_inside(void);
void access_goes_on(void);
/* An access is over, or events have been taken. True: the run stops. */
bool access_end(struct thread *t, bool by_op);

/* ---- debug_past.c ---- */

/* What the instruction that comes next works on, into the ring of the worker's slot. */
void past_remember(struct thread *t, const struct worker_place *here);
/* There is no more room, or what the last one stores is not known. */
bool past_ends(void);
/* Host addresses that a call has left below the stack pointer are overwritten by the next instruction, as a rule, but not all
 * ways into a function leave them. */
void past_hide_host_word(struct thread *t);

#endif

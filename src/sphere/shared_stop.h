/* Processes that are stopped (SIGSTOP and the like) while they own shared memory: nobody else could get it until they continue.
 * So who sends such a signal to a process of the sphere asks it first to give all its pages up; they are nobody's then. The process
 * is asked through its entry in the tables and answers from its pager, or from the R-thread that computes, with the turn, which it
 * keeps until the signal is there: then no R-thread runs before the process continues. Replay sees only the RELEASE events. */
#ifndef REPRISE_SHARED_STOP_H
#define REPRISE_SHARED_STOP_H

#include "sphere/thread.h"

/* Whether a call sends a signal that may stop: to *pid, as kill() has it. */
bool shared_stop_is_sent(uint64_t nr, const uint64_t a[6], int *pid);
/* Around such a call. The caller has the turn. */
void shared_stop_before(struct thread *t, int pid);
void shared_stop_after(void);

/* The process that is to stop: whether it was asked, and what it does then. The caller has the turn. */
bool shared_stop_is_due(void);
void shared_stop_here(struct thread *t, uint8_t flags);

/* A process is new to the tables, its pager runs and it has no page yet: who has looked for it there before, to send it such
 * a signal, has sent it when this returns. The caller has the turn. */
void shared_stop_await_senders(struct thread *t);

/* In front of taking a page: stops for a signal that has come while we block signals, which would be taken with the page later.
 * The caller has the turn, and no page that it has just taken. */
void shared_stop_held(struct thread *t);

#endif

/* Order recorder: the R-threads of one address space run one at a time (DeLorean's chunks in CapoOne, in order-only mode).
 *
 * Who runs program code has the turn. A thread in a system call keeps its turn but may lose it: another one that has waited a
 * moment steals it, so a call that does not block costs no switch. A thread that computes for long while others wait is asked
 * to stop at its next tick point. The order itself need not be logged: events are written by whoever has the turn, in the
 * address space's one stream. Only a turn that ends where no event marks it needs one (PREEMPT), and one that begins there
 * (TURN). */
#ifndef REPRISE_ORDER_H
#define REPRISE_ORDER_H

#include "sphere/thread.h"

/* The calling thread is the only one of its address space: after start and after fork. */
void order_start(struct thread *self, bool chaos);

/* A thread that is about to be made, by the one that has the turn; and one that could not be made. */
void order_add(struct thread *t);
void order_remove(struct thread *t);
/* Whether there is more than one thread. */
bool order_is_shared(void);
/* Whether the calling one is the program's last. */
bool order_is_last(void);

/* The pager of shared memory: the number that it has instead of an R-thread's. It never queues. */
#define ORDER_PAGER 0xfffff
/* Takes the turn if nobody has it, or from a call that waits or has been seen by the last try, too. */
bool order_try(struct thread *t);
/* Processes that share memory can be killed one at a time. Called with the turn, which `dead` had; ran: it had begun to use it. */
extern void (*order_found_dead)(struct thread *dead, bool ran);
/* Asks who computes to come to a tick point. */
void order_interrupt(struct thread *t);

/* Waits for the turn. */
void order_take(struct thread *t);
/* Gives it up. */
void order_drop(struct thread *t);

/* Around a call that may block. `waits`: it most likely will. */
void order_enter_call(struct thread *t, bool waits);
void order_leave_call(struct thread *t);
/* A vfork child has gone, maybe with the turn. */
void order_reclaim(struct thread *parent, struct thread *child);

/* Whether somebody has waited for the turn for longer than he should. */
bool order_is_overdue(void);
/* At a tick point: whether t should stop here for others. */
bool order_should_yield(struct thread *t);
/* Lets others run, then waits for the turn again. */
void order_yield(struct thread *t);
/* Ticks until the thread is to look up again. */
uint64_t order_budget(struct thread *t);

#endif

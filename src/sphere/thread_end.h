/* What the kernel would write into the program's memory when a thread ends, at a moment of its own: done by the runtime
 * instead, at a recorded point, and again at replay. */
#ifndef REPRISE_THREAD_END_H
#define REPRISE_THREAD_END_H

#include "sphere/thread.h"

long thread_set_tid_address(struct thread *t, gaddr word);
long thread_set_robust_list(struct thread *t, gaddr head, uint64_t len);
/* Only of the calling thread. */
long thread_get_robust_list(struct thread *t, const uint64_t a[6]);
/* The process ends, and t with it: marks the robust mutexes that it holds. */
void thread_leave_mutexes(struct thread *t);
/* Clears the thread's id word, marks the robust mutexes that it holds, wakes who waits for them. */
void thread_clear_words(struct thread *t);
/* The same of another process's, which was killed. */
void thread_clear_words_of_killed(struct thread *t);

/* The same for the robust mutexes in shared memory that the threads of a process hold when it ends. */
void process_clear_words(struct process *p);

#endif

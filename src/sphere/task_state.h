/* What the kernel says of any thread. */
#ifndef REPRISE_TASK_STATE_H
#define REPRISE_TASK_STATE_H

#include "inproc/types.h"

/* The letter of its state in /proc: 'T' stopped, 'Z' ended but not waited for; 'X': it is no more. */
char task_state(int tid);
/* Signals that the kernel has for the thread or for its process, and nobody has taken yet: a bit for each. */
uint64_t task_pending(int tid);
/* It has ended; if it is the first thread of a process, all of that has. */
bool task_is_over(int tid);
/* So it has, and is no more, or nobody has waited for it; without /proc the latter is not known. */
bool task_is_gone(int tid);
/* 0: it has none here, or is gone. */
int task_parent(int pid);
/* Nobody in the session could continue our process group: its processes, as far as they are our ancestors, have parents elsewhere. Stop
 * signals other than SIGSTOP do nothing then. */
bool task_group_is_orphaned(void);

/* The runtime's own threads have a name by which other processes of the sphere know them. The caller is one: */
void task_name_service(void);
bool task_is_service(int tid);
/* How many threads of a process are such. */
uint64_t task_services(int pid);

#endif

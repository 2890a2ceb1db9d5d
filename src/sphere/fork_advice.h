/* Memory that the program's children are not to have, or to find empty (MADV_DONTFORK, MADV_WIPEONFORK). The copies that a
 * debugger makes of a process are no children: they have all of it. */
#ifndef REPRISE_FORK_ADVICE_H
#define REPRISE_FORK_ADVICE_H

#include <stddef.h>

struct snapshot_advice;

/* The program gives such advice for the first time. */
void fork_advice_begin(void);
/* Around the making of a copy; `put_back` in both processes. */
void fork_advice_lift(void);
void fork_advice_put_back(void);
/* This process goes on as the child. */
void fork_advice_inherit(void);
/* For checkpoints: which memory that is now, and which has guards (MADV_GUARD_INSTALL; the list stays until the next question), and giving the advice anew. */
size_t fork_advice_list(const struct snapshot_advice **list);
void fork_advice_restore(const struct snapshot_advice *list, size_t n);

#endif

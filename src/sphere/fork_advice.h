/* Memory that the program's children are not to have, or to find empty (MADV_DONTFORK, MADV_WIPEONFORK). The copies that a
 * debugger makes of a process are no children: they have all of it. */
#ifndef REPRISE_FORK_ADVICE_H
#define REPRISE_FORK_ADVICE_H

/* The program gives such advice for the first time. */
void fork_advice_begin(void);
/* Around the making of a copy; `put_back` in both processes. */
void fork_advice_lift(void);
void fork_advice_put_back(void);
/* This process goes on as the child. */
void fork_advice_inherit(void);

#endif

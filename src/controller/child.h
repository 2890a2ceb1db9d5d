/* The first process of the program, as a child of the controller: it gets the terminal, the signals and everything inherited
 * as if the controller were not there. */
#ifndef REPRISE_CHILD_H
#define REPRISE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct drain;

struct child {
    pid_t pid;
    bool ended;
    int status;       /* ended: as wait() gives it */
    bool told_to_end; /* ended: by a signal that would have been for it */
};

/* Descriptors 0, 1 and 2 that are closed get something behind them, so that no file of ours takes their place; the child still
 * finds them closed. To be called first of all. */
void child_fill_gaps(void);

/* Forks; `become(arg)` runs in the child and returns an exit status only if it fails. The parent has all signals blocked when
 * this returns: it calls child_let_go(), starts its threads, then calls child_watch(). False: errno says why. */
bool child_start(struct child *, int (*become)(void *), void *arg);

/* Closes what the controller inherited, except stderr and own[0..n): others must see it closed when the program closes it. */
void child_let_go(const int *own, int n);

/* From now on signals for the controller are the child's; each that matters counts *bell up and wakes it. */
void child_watch(struct child *, uint32_t *bell);

/* Hands signals on but those that recorded processes sent (to the whole group, so that the child has them already), sees whether
 * the child has ended or stopped. */
void child_look(struct child *, const struct drain *);

/* Ends this process as that one ended. */
_Noreturn void exit_like(int status);

#endif

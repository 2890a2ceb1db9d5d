/* The sphere's standard output and error: replay repeats what went there, in the recorded order.
 * Descriptors are followed through dup and close, and recognised when the files are opened again or come in a message; the order among parallel processes is a number that each output gets. */
#ifndef REPRISE_OUTPUTS_H
#define REPRISE_OUTPUTS_H

#include "sphere/thread.h"

struct output {
    uint32_t fd; /* 1 or 2 */
    uint64_t seq;
    bool locked;
};

/* Recording: the first process has them as descriptors 1 and 2. */
void outputs_identify(void);
/* Recording: whether the call writes to one of them; no other process of the sphere does until outputs_end. */
bool outputs_begin(struct thread *t, uint64_t nr, const uint64_t a[6], struct output *out);
/* Whether the call can be issued with the turn kept, because it will not wait. Otherwise the process may end, by another
 * thread, when something has been written of which the log does not know yet. */
bool outputs_is_ready(uint64_t nr, const uint64_t a[6]);
/* False: nothing was written. */
bool outputs_end(struct output *out, long ret);
/* Calls that move data to them inside the kernel are refused: nobody would know what it was. 0: may be issued. */
long outputs_refuse(struct thread *t, uint64_t nr, const uint64_t a[6]);
/* After a call that may have made or closed descriptors. */
void outputs_follow(struct thread *t, uint64_t nr, const uint64_t a[6], long ret);
/* After execve: some were to be closed. */
void outputs_after_exec(struct files *f);

/* Replay: whether other processes of the sphere compute, since somebody asked last; those that wait for their place to write do not. */
bool outputs_others_go_on(void);
/* Replay: writes what the recorded call wrote, in its place. */
void outputs_repeat(uint64_t nr, const uint64_t a[6], uint32_t fd, uint64_t seq, long ret);

#endif

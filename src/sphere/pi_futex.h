/* Futexes with priority inheritance, while recording. The kernel changes such a word while its caller waits: at a moment that is in no
 * log. So the runtime does what the kernel would, at moments that are: an owner is set, and the bit that says that somebody waits,
 * by who has the turn. Nobody inherits a priority; one R-thread runs at a time. */
#ifndef REPRISE_PI_FUTEX_H
#define REPRISE_PI_FUTEX_H

#include "sphere/thread.h"

bool pi_futex_is(uint64_t nr, const uint64_t a[6]);
/* Result of the call; GATE_ABORTED: it is to be made again, because the lock was free for a moment, or for a signal.
 * wait: issues a call of futex, without the turn. */
long pi_futex_call(struct tblock *tb, const uint64_t a[6], long (*wait)(struct tblock *tb, uint64_t b[6]));

#endif

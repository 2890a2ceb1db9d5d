/* Work with descriptors when the program's table may be full: in a short-lived thread that shares everything but the table.
 * Its copy is emptied first, so that the limit does not matter. */
#ifndef REPRISE_APART_H
#define REPRISE_APART_H

#include "inproc/types.h"

/* fn(arg) in such a thread, while the caller waits. Descriptors other than keep[0..n) are closed there, and whatever fn
 * opens is gone afterwards; what it maps stays. All signals are blocked. -errno: it was not called. */
long apart_call(void (*fn)(void *), void *arg, const int *keep, int n);

#endif

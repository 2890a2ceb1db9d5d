/* Asynchronous input and output (io_setup and the like) while recording.
 * The kernel would write into the program's memory at any time: buffers, and a ring of what is done, which the program may look at
 * without a call. So each operation is done when it is submitted, with the turn, and what it wrote is an output of io_submit(). The
 * ring is memory of the program's own that only the calls here write to; all that is known of a context is in it.
 * Caller has the turn. */
#ifndef REPRISE_AIO_H
#define REPRISE_AIO_H

#include "sphere/sys/model.h"

bool aio_is(uint64_t nr);

/* Makes a call, as the program would; lends: others may run meanwhile. */
typedef long aio_issue_fn(struct tblock *tb, uint64_t nr, uint64_t a[6], bool lends);
/* Does one of the calls. */
long aio_call(struct tblock *tb, uint64_t nr, const uint64_t a[6], aio_issue_fn *issue);
/* What it wrote, besides what the model says. */
void aio_wrote(uint64_t nr, const uint64_t a[6], long ret, struct writes *w);
/* The n calls that the last io_submit() has made. */
void aio_each_done(struct thread *t, uint32_t n,
                   void (*f)(struct thread *t, uint64_t nr, const uint64_t a[6], long ret));

/* Replay: the memory of a context, which is at ctx. 0 or -errno. */
long aio_map_again(const uint64_t a[6], gaddr ctx);
/* io_destroy() */
long aio_destroy(const uint64_t a[6]);

#endif

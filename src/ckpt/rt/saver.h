/* The saver: a thread of the runtime, in processes that take checkpoints, that the program does not see. It has a table of
 * descriptors of its own, so what it opens (userfaultfd, pagemap) needs no hiding; and it saves pages while the program runs. */
#ifndef REPRISE_CKPT_SAVER_H
#define REPRISE_CKPT_SAVER_H

#include "inproc/types.h"

/* False: no thread can be made. */
bool saver_start(void);
/* Runs fn on the saver and waits for it. Without a saver: right here. */
void saver_do(void (*fn)(void *), void *arg);
/* The same without waiting; saver_do waits until it is over. */
void saver_begin(void (*fn)(void *), void *arg);
bool saver_is_busy(void);
void saver_wait(void);
/* Ends it: from now on this process may have a single thread. What it had open is closed. False: there was none. */
bool saver_end(void);
/* In the child of a fork. */
void saver_after_fork(void);

#endif

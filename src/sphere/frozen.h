/* Recording: what the program sees of a page that processes outside of the sphere may write to, while it has the page as a whole: a copy,
 * which is what the log has. Their changes show when it has the page the next time.
 *
 * Invariant: a frozen page is owned. The file's own view is kept beside, and takes its place again at the end. */
#ifndef REPRISE_FROZEN_H
#define REPRISE_FROZEN_H

#include "sphere/shared.h"

extern bool frozen_any;

/* The page is open. Behind the end of the file it stays as it is. */
void frozen_make(struct shared_at at);
/* The program sees the file again, if it did not. */
void frozen_end(struct shared_at at);
void frozen_end_all(void);

#endif

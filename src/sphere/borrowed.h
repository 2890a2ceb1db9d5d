/* Borrowed pages: private mappings of files that other processes change.
 *
 * Where the program has not written, a private mapping shows its file, as it is when somebody looks. As long as this process alone
 * changes the file, replay shows the same. A page that others may change is borrowed: closed, until the program or a call touches
 * it; then it becomes the program's own, copied as by a write, and what it holds is in the log (ACQUIRE with PAGE_COPIED).
 *
 * Invariant: a page of a mapping that `shows_shared` is this process's in the file (shared.h), or borrowed, or the program's own.
 * What becomes borrowed, and when, is the same at replay: a mapping, at MAPPED or POKE_BORROWS; a page, when the file's page goes,
 * when the copy is dropped, when the file is cut off, and after a SIGBUS.
 * Whoever calls has the turn, and not cache_lock unless that is said. */
#ifndef REPRISE_BORROWED_H
#define REPRISE_BORROWED_H

#include "sphere/shared.h"

extern bool borrowed_any; /* there are mappings that show such a file */

/* All private mappings of the file show it from now on; what is not ours in it is borrowed, also what was copied before. */
void borrowed_show(uint64_t object);
/* A shared mapping of the file is new: the same for mappings that did not show it before. */
void borrowed_show_shared(uint64_t object);
/* So does this one, which is new itself. */
void borrowed_show_new(const struct mapping *m);
/* The program has dropped what it had written there. */
void borrowed_dropped(gaddr start, gaddr end);
/* Guards are there from now on, whatever the file shows. */
void borrowed_guarded(gaddr start, gaddr end);
/* The file ends there now: what the program had written behind it is gone. */
void borrowed_cut(uint64_t dev, uint64_t ino, uint64_t size);
/* The program has touched a page that lies behind the end of its file: it need not stay so. */
void borrowed_bus(gaddr addr);
/* The page, of a file, is about to be another process's. */
void borrowed_give(struct shared_at at);
/* So are all of them. Caller holds cache_lock. */
void borrowed_give_all(void);
/* Pages are about to be filled, and are the program's own from then on. */
void borrowed_open(gaddr start, gaddr end);
/* How many pages from start on are borrowed, in one row. */
uint64_t borrowed_pages(gaddr start);

/* Recording: mode.copy */
void borrowed_copy(struct thread *t, gaddr addr, bool faulted);
/* Recording: no copy has gone with the end of its file, of which we have not been told yet (writers.h). */
bool borrowed_is_whole(void);

#endif

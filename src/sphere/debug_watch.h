/* Breakpoints and watchpoints of the debugger, any number.
 *
 * A breakpoint is an exit in front of its instruction's translation. Pages that hold watched bytes are write-protected (closed to
 * reads, too, if those are watched) behind the program's back; an access opens the page until the instruction or the event is
 * over, and then what is watched is compared. Whatever else touches such a page, the runtime itself for instance, opens it, too.
 *
 * That is cheap until the page is written often. A page that was opened a few dozen times is filtered instead: it stays writable,
 * the program's code is translated anew with a look at the address of each store (engine/store_filter.h), and what the runtime
 * wrote is found by comparing whenever events have been taken. */
#ifndef REPRISE_DEBUG_WATCH_H
#define REPRISE_DEBUG_WATCH_H

#include "inproc/types.h"
#include "log/worker.h"

/* engine_host.has_break */
bool watch_has_break(gaddr pc);
/* engine_host.kept_loaded */
void watch_code_loaded(gaddr lo, gaddr hi);
/* Replaces all of them, or adds. */
void watch_set(const struct worker_break *list, size_t n, bool add);
bool watch_is_any(void);

/* An access of n bytes to addr has faulted. True: it was our protection; the page is open now. *is_hit: the access is one that
 * is watched for as such, whether or not it changes anything. */
bool watch_open(gaddr addr, size_t n, bool write, bool *is_hit, gaddr *hit);
/* The same for a page that has to come from another process first. Nothing is opened. */
bool watch_touches(gaddr addr, size_t n, bool write, bool *is_hit, gaddr *hit);
/* Whether a page is open. */
bool watch_is_open(void);
/* The access that opened pages has not happened, and will begin anew. */
void watch_take_back(void);
/* The same, where a part of it may have happened (an indirect call pushes, and then finds the budget used up): what was there before
 * stays what it will be compared with. */
void watch_undo(void);
/* Closes what is open. True: watched bytes have changed, at *addr. */
bool watch_close(gaddr *addr);
/* Events have been taken: memory may have been written by other than the program's instructions. */
void watch_events_taken(void);

/* Filters the pages that have proved hot. To be called where no translated code is under way. */
void watch_filter_hot(void);
/* The program is about to store n bytes at addr. True: they are watched, and the page is filtered and was not open; now it is. */
bool watch_store(gaddr addr, uint64_t n, bool *is_hit, gaddr *hit);
/* The same for a store of which nothing is known. */
bool watch_store_anywhere(void);

/* A shared page has come from another process: it is open, and is to be compared. */
void watch_came(gaddr addr);
/* Mappings have changed: everything is to be closed, and compared, anew. */
void watch_remap(void);

#endif

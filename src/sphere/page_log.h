/* The page log (log/page_log.h) in a replaying process: a replay of all processes writes it, one that is alone reads it.
 * Invariant: a worker's copy of a page that it does not own is what the process left in it, so later differences fit. */
#ifndef REPRISE_SPHERE_PAGE_LOG_H
#define REPRISE_SPHERE_PAGE_LOG_H

#include "sphere/shared.h"

/* ---- writing ---- */

extern bool page_log_is_written;
/* fd: where records are appended, by all processes. */
void page_log_start(int fd);
/* The page is about to go to another process. */
void page_log_released(struct shared_at at);
/* It has come; the ACQUIRE event is not taken yet. */
void page_log_acquired(struct shared_at at);
/* In a replay of all processes: whether the page, which has come, holds these blocks, and else zero (is_whole). */
bool page_log_is(struct shared_at at, uint64_t blocks, bool is_whole, const uint8_t *expected);
/* The process has seen or left something in the page, which is nobody's, that is in no copy of ours. */
void page_log_shown(struct shared_at at);
/* What this process has is not what a worker would have: in the child of a fork, or where a file was cut off. */
void page_log_forget(void);

/* ---- reading ---- */

/* The page has come to a worker, or is nobody's and has been touched: it gets its contents. False: the page log does not have them. */
bool page_log_fill(struct shared_at at);
/* The same with what a log says: these blocks; the others are zero (is_whole) or as they were. False: there is no such page. */
bool page_log_put(struct shared_at at, uint64_t blocks, bool is_whole, const uint8_t *from);
/* The same for n bytes of a page that is nobody's, which are at addr. */
bool page_log_put_value(struct shared_at at, gaddr addr, const void *from, size_t n);

#endif

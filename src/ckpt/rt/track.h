/* Modification tracking: which pages of the program's private memory were written since the last collection.
 *
 * Two back ends. `uffd`: userfaultfd write-protection that the kernel lifts by itself (WP_ASYNC), and PAGEMAP_SCAN, which
 * finds the pages and protects them again in one call; the program takes a minor fault (about 1 us) for each page and interval.
 * `mprotect`: pages are made read-only behind the program's back, *closed*, and the fault is ours; where neighbours are written
 * in turn, runs of pages that double are opened at once (and count as written), so that mappings do not multiply.
 *
 * Whatever changes what is mapped or what it contains says so by track_changed(): such memory counts as new, all of it as
 * written. So a range that is told too wide costs time and is never wrong.
 *
 * Others close pages, too: code_watch.c, debug_watch.c (and shared.c, whose memory is not private and not tracked here). Who
 * makes pages writable again says so by track_opened(); who closes them is asked before the tracker opens any.
 *
 * Threads: track_start() and track_collect() are called by the R-thread that has the turn, with all others outside of the
 * cache, without cache_lock. */
#ifndef REPRISE_CKPT_TRACK_H
#define REPRISE_CKPT_TRACK_H

#include "ckpt/place.h"
#include "inproc/types.h"

/* `--debug track=uffd|mprotect`; automatic: uffd where the kernel has it. */
enum track_choice { TRACK_AUTOMATIC, TRACK_UFFD, TRACK_MPROTECT };
extern enum track_choice track_wanted;

extern bool track_is_on;
/* From now on; the first collection has all that there is. False: neither back end works here. */
bool track_start(void);
/* In the child of a fork, where tracking is off: registrations and protections have not come along. */
void track_after_fork(void);
const char *track_name(void); /* of the back end */

/* ---- told by the address space; caller holds cache_lock ---- */

/* What [start, end) contains, or whether it is mapped, may have changed otherwise than by writing. */
void track_changed(gaddr start, gaddr end);
/* The kernel lets the program write [start, end) again as the mapping says. */
void track_opened(gaddr start, gaddr end);

/* ---- told by faults and calls: pages that are closed (back end mprotect) ---- */

extern bool track_closes; /* calls must ask the model what the kernel will write */
/* A write to addr has faulted. True: the page was closed and is open now. Takes cache_lock. */
bool track_write_fault(gaddr addr);
/* The kernel is about to write [start, start + len); or anywhere. Takes cache_lock. */
void track_before_kernel_write(gaddr start, size_t len);
void track_before_any_kernel_write(void);

/* mremap for a mapping that pages which were closed may have left in pieces, which the kernel does not move together. */
long track_mremap(gaddr old, size_t old_len, size_t new_len, int flags, gaddr to);

/* ---- collecting ---- */

struct track_set {
    const struct ckpt_range *dropped; /* ascending, disjoint */
    size_t n_dropped;
    const struct ckpt_range *written; /* ascending, disjoint; only what is the program's, private and there */
    size_t n_written, n_pages;
};

/* What has changed and was written since the last time. The next interval begins: what is written from now on is in the next
 * set. The set stays until the next call. False: it could not be found out. */
bool track_collect(struct track_set *out);

#endif

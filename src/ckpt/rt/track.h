/* Modification tracking: which pages of the program's private memory were written since the last collection.
 *
 * Two back ends. `uffd`: userfaultfd write-protection that the kernel lifts by itself (WP_ASYNC), and PAGEMAP_SCAN, which
 * finds the pages and protects them again in one call; the program takes a minor fault (about 1 us) for each page and interval.
 * `mprotect`: pages are made read-only behind the program's back and the fault is ours; where neighbours are written in turn,
 * runs of pages that double are opened at once (and count as written), so that mappings do not multiply.
 *
 * Others protect pages, too: code_watch.c, shared.c (not tracked here: it is not private), debug_watch.c. So nobody asks the
 * kernel for PROT_WRITE but through track_prot(), which takes it away while a page is closed; a write fault is offered to all.
 *
 * Threads: track_collect() and track_start() are called by the R-thread that has the turn, with all others outside of the
 * cache. The rest is called with cache_lock held, unless said otherwise. */
#ifndef REPRISE_CKPT_TRACK_H
#define REPRISE_CKPT_TRACK_H

#include "ckpt/place.h"
#include "inproc/types.h"

/* `--debug track=uffd|mprotect`; automatic: uffd where the kernel has it. */
enum track_choice { TRACK_AUTOMATIC, TRACK_UFFD, TRACK_MPROTECT };
extern enum track_choice track_wanted;

/* From now on; everything counts as written until the first collection. False: neither back end works here. */
bool track_start(void);
void track_stop(void);
/* In the child of a fork: registration and protections did not come along; all counts as written. Without the lock. */
void track_after_fork(void);
extern bool track_is_on;
const char *track_name(void); /* of the back end */

/* ---- told by the address space ---- */

/* The contents of [start, end) went away: unmapped, replaced, MADV_DONTNEED. */
void track_dropped(gaddr start, gaddr end);
/* [start, end) is mapped newly, was moved here, or has another protection. */
void track_mapped(gaddr start, gaddr end);

/* ---- told by faults and calls ---- */

/* A write to addr has faulted. True: it was our protection; the page is open now. Takes cache_lock. */
bool track_write_fault(gaddr addr);
/* The kernel is about to write [start, start + len). Takes cache_lock if there is anything to do. */
void track_before_kernel_write(gaddr start, size_t len);
void track_before_any_kernel_write(void);
/* Whether calls must ask the model what the kernel will write: cheap. */
extern bool track_closes_pages;

/* ---- collecting ---- */

struct track_set {
    struct ckpt_range *dropped; /* ascending, disjoint */
    size_t n_dropped;
    struct ckpt_range *written; /* ascending, disjoint; only what is private, of the program, and there */
    size_t n_written, n_pages;
};

/* What was dropped and written since the last time. The next interval begins: pages of the set that are written from now on
 * are in the next set, too. The set stays until the next call. False: could not be found out; all is to be given up. */
bool track_collect(struct track_set *out);

#endif

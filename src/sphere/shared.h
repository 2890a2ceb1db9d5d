/* Memory shared between processes: which pages this address space owns and may touch.
 *
 * Invariant: a page of a tracked mapping that is not owned is PROT_NONE for the kernel, in all its mappings, whatever the
 * program believes. Ownership changes only where the log has an event, and is the same at replay.
 * The owner of all this is the R-thread that has the turn (or the pager, when it has it). */
#ifndef REPRISE_SHARED_H
#define REPRISE_SHARED_H

#include "log/shared.h"
#include "sphere/aspace.h"
#include "sphere/thread.h"

struct shared_at { /* a page */
    uint64_t object, page;
};

extern bool shared_active; /* there are tracked mappings */
extern uint64_t shared_acquired; /* counted up whenever a page had to be waited for or taken */

/* ---- the tables of the sphere ---- */

/* NULL: the controller has made none; nothing is tracked then. */
struct shared_tables *shared_tables(void);
/* Index of a page in the tables. `first`: the owner of the whole chunk, if it is new. */
uint64_t shared_index(struct shared_at at, uint64_t first);
/* The file's slot; *is_first: it had none until now. SHARED_OBJECTS: no room. */
uint64_t shared_object_slot(uint64_t object, bool *is_first);
bool shared_object_is_known(uint64_t object);

/* Numbers of objects, the same at replay. */
uint64_t shared_anonymous(void);
uint64_t shared_file(uint64_t dev, uint64_t ino);

/* ---- pages of this address space ---- */

bool shared_owns(struct shared_at at);
/* The page is this address space's now, or no longer. */
void shared_take(struct shared_at at);
void shared_give(struct shared_at at);

/* The mappings of [start, end) are new or have changed. Caller holds cache_lock. */
void shared_reprotect(gaddr start, gaddr end);

/* Anonymous shared memory becomes tracked where it can be inherited; it is this address space's. claim: told of each range. */
void shared_before_fork(void (*claim)(uint64_t object, uint64_t page, uint64_t n));
/* In the child: nothing is owned. */
void shared_after_fork(void);
/* All memory is accessible from now on, nothing is tracked. */
void shared_abandon(void);

/* A page fault. True: the page was not owned, now it is. */
bool shared_fault(struct thread *t, gaddr addr, uint64_t err);
/* All pages of the range are owned at the same time, until the turn is given up. */
void shared_hold(gaddr start, size_t len);

/* ---- recording (shared_record.c) ---- */

/* Whether a new mapping of a file is tracked. */
bool shared_tracks(int fd, const struct mapping *m);
/* mode.acquire */
void shared_acquire(struct thread *t, struct shared_at at, gaddr addr);
/* Hands over pages that others want. The caller has the turn. flags: EVF_* of the events. computing: it will go on at once. */
void shared_serve(struct thread *t, uint8_t flags, bool computing);
/* Whether somebody wants one: cheap. */
bool shared_is_wanted(void);
void shared_claim(uint64_t object, uint64_t page, uint64_t n);
/* Whether the thread is no more, or a zombie that took part. */
bool shared_is_dead(uint32_t tid);
/* The pager must be there before a child can ask for pages. */
void shared_start_pager(struct thread *t);
/* In the child of a fork, recording. */
void shared_forget_pager(void);
/* The stream has its last event. */
void shared_ended(void);

#endif

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

extern bool shared_active;       /* there are tracked mappings */
extern uint64_t shared_acquired; /* counted up whenever a page had to be waited for or taken */

/* ---- the tables of the sphere ---- */

/* NULL: the controller has made none; nothing is tracked then. */
struct shared_tables *shared_tables(void);
/* Whether memory is tracked in this process: there are tables, and it has not been abandoned. */
bool shared_is_on(void);
/* Streams that have their last event. Those with numbers that are too high for the table are not known. */
void shared_set_ended(uint64_t stream);
bool shared_has_ended(uint64_t stream);
/* Index of a page in the tables. `first`: the owner of the whole chunk, if it is new. */
uint64_t shared_index(struct shared_at at, uint64_t first);
/* The file's slot; *is_first: it had none until now. SHARED_OBJECTS: no room. */
uint64_t shared_object_slot(uint64_t object, bool *is_first);
bool shared_object_is_known(uint64_t object);

/* Numbers of objects, the same at replay. */
uint64_t shared_anonymous(void);
/* How many of these there have been; a restored process goes on counting. */
uint64_t shared_count_anonymous(void);
void shared_set_anonymous(uint64_t n);
uint64_t shared_file(const struct file_id *id);
bool shared_is_file(uint64_t object);
/* Whether any file is shared in this sphere. */
bool shared_has_files(void);

/* ---- pages of this address space ---- */

bool shared_owns(struct shared_at at);
/* The page is this address space's now, or no longer. */
void shared_take(struct shared_at at);
void shared_give(struct shared_at at);

/* So are pages [0, n) of an object that nobody had before. */
void shared_own(uint64_t object, uint64_t n);

/* Pages of a mapping, tracked or borrowed, cannot be touched any more. Caller holds cache_lock. */
void shared_close_pages(const struct mapping *m, gaddr start, size_t len);
/* There is such a mapping. */
void shared_note(const struct mapping *m);
/* The mappings of [start, end) are new or have changed. Caller holds cache_lock. */
void shared_reprotect(gaddr start, gaddr end);

/* Anonymous shared memory becomes tracked where it can be inherited; it is this address space's. claim: told of each range. */
void shared_before_fork(void (*claim)(uint64_t object, uint64_t page, uint64_t n));
/* No tracked mapping is accessible, owned or not. */
void shared_close_all(void);
/* Nothing is owned any more: in the child, or because it was given up. */
void shared_disown_all(void);
/* Visits all pages that are owned. */
void shared_each_owned(struct thread *t, uint8_t flags,
                       void (*visit)(struct thread *t, struct shared_at at, uint8_t flags));
/* All memory is accessible from now on, nothing is tracked. */
void shared_abandon(void);

/* The next chunk, from number *i on, of which pages are owned: a bit for each. NULL: none. */
const uint64_t *shared_nth_owned(uint64_t *i, uint64_t *object, uint64_t *number);
/* In a process that is restored, before anything of it is mapped: pages that are owned, while the others stay open, too, to be filled. */
void shared_set_owned(uint64_t object, uint64_t page, uint64_t n);
void shared_stay_open(bool open);

/* The page of a tracked mapping that addr is on. */
struct shared_at shared_page_of(const struct mapping *m, gaddr addr);
/* Visits all places where a page is mapped. `visit` is called with cache_lock held. */
void shared_each_view(struct shared_at at, void (*visit)(const struct mapping *m, gaddr addr));
/* Where a page is mapped; 0: nowhere. */
gaddr shared_address_of(struct shared_at at);
/* Whether the page at addr is tracked and not owned. Takes no lock: replay has one kernel thread. */
bool shared_is_closed(gaddr addr);
/* Reads n bytes of one page, ours or not, for others than the program. */
bool shared_peek(void *to, gaddr from, size_t n);
/* Writes n bytes of one page that is not ours: in a worker, where it is memory of its own. */
bool shared_poke(gaddr to, const void *from, size_t n);
/* A page fault. True: the page was not owned; now it is, or the access has been made. */
bool shared_fault(struct thread *t, gaddr addr, uint64_t err);
/* All pages of the range are owned at the same time, until the turn is given up. */
void shared_hold(gaddr start, size_t len);
/* The same for bytes of a file, mapped or not. */
void shared_hold_file(struct thread *t, uint64_t object, uint64_t start, uint64_t len);

/* Replay: what the program does next is touch this page, which lies behind the end of its file. */
void shared_expect_bus(gaddr addr);
/* Whether a fault is that one. */
bool shared_is_bus(gaddr addr);
/* It has happened. */
void shared_had_bus(void);

/* ---- recording (shared_record.c) ---- */

/* Whether a new mapping of a file is tracked. */
bool shared_tracks(int fd, uint64_t object);
/* Whether a file has no contents but in memory; fd -1: a System V segment. */
bool shared_is_in_memory(int fd);
/* mode.acquire */
void shared_acquire(struct thread *t, struct shared_at at, gaddr addr);
/* When recording has stopped, nobody asks or answers any more: all memory is accessible from then on, as natively. True: so it is. The
 * caller has the turn. */
bool shared_leave(void);
/* Hands over pages that others want. The caller has the turn. flags: EVF_* of the events. computing: it will go on at once. */
void shared_serve(struct thread *t, uint8_t flags, bool computing);
/* Pages that are left to outsiders are all with them again. */
void shared_return_to_outsiders(struct thread *t, uint8_t flags);
/* Whether somebody wants one: cheap. */
bool shared_is_wanted(void);
void shared_claim(uint64_t object, uint64_t page, uint64_t n);
/* The same for all `bytes` of a file that nobody has mapped before; false: somebody was faster, or it is too large. */
bool shared_claim_file(struct thread *t, uint64_t object, uint64_t bytes);
/* Whether a new mapping looks like a word that somebody sets who need not be of the sphere: what it holds has to be logged with each
 * access. `leave`: it is such a one. `keep`: no longer, a process of the sphere writes to it. */
bool shared_is_for_outsiders(int fd, const struct mapping *m);
void shared_leave_to_outsiders(uint64_t object);
void shared_keep_from_outsiders(uint64_t object);
/* Mappings of [start, end) are about to be made writable: the same for what they are of. */
void shared_becomes_writable(gaddr start, gaddr end);
/* Whether the thread is no more, or a zombie that took part. */
bool shared_is_dead(uint32_t tid);
/* The pager must be there before a child can ask for pages. */
void shared_start_pager(struct thread *t);
/* In the child of a fork, recording. */
void shared_forget_pager(void);
/* Ends the pager, for a call that wants to be made by the only thread of a process; pages stay ours. True: there was one, and it is
 * to be started again. */
bool shared_end_pager(void);
/* The stream has its last event; its ring is about to be another's. */
void shared_ended(void);

/* Whether R-threads wait for pages. */
bool shared_is_awaited(void);

/* For shared_stop.c: our entry in the tables (NULL: none), the bell of another one, whether that one can still answer. */
struct shared_sharer *shared_self(void);
void shared_ring(struct shared_sharer *s);
bool shared_sharer_lives(const struct shared_sharer *s);
/* Everything that is owned becomes nobody's. */
void shared_release_all(struct thread *t, uint8_t flags);

#endif

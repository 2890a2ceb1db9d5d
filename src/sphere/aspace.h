/* Address space: what the program has mapped, as the program believes it to be.
 * Invariant: every mapping of the program is in the list; of the runtime only cache windows amid the program's addresses.
 * Owner: one per address space (threads and vfork children share it). One lock, cache_lock, guards mappings and code cache
 * together, because each change of one concerns the other; aspace_* take it themselves unless they say otherwise. */
#ifndef REPRISE_ASPACE_H
#define REPRISE_ASPACE_H

#include "inproc/types.h"
#include "sphere/file_id.h"

struct mapping {
    gaddr start, end;
    uint32_t prot;   /* PROT_*, as the program asked */
    uint32_t flags;  /* MAP_* of the mmap call */
    uint64_t offset; /* in the file */
    struct file_id file;
    uint64_t object;   /* shared memory: its number (shared.h), also if it is shown privately; 0: none */
    bool tracked;      /* its pages are owned by one address space at a time */
    bool shows_shared; /* private, of a file that other processes change */
    bool borrowed;     /* with it: closed until it is touched, and copied then (borrowed.h) */
    bool guarded;      /* touching it is a SIGSEGV (MADV_GUARD_INSTALL): it shows nothing */
    bool was_writable; /* private file pages may differ from the file */
    bool runtime;      /* a cache window of ours: the program must not see or touch it */
    char name[16];     /* "[heap]", "[stack]", "[vdso]": what /proc/self/maps shows for it, or "" */
};

struct aspace;
extern struct aspace the_aspace;

/* mmap for the program: addr is a hint, or exact with MAP_FIXED or MAP_FIXED_NOREPLACE in flags. Picks the address itself
 * (deterministically, by file identity for files) when there is no hint. Returns the address or -errno. */
/* How much of the address space a mapping takes: whole pages, also huge ones. */
size_t aspace_mmap_size(size_t len, int flags);
long aspace_mmap(gaddr addr, size_t len, int prot, int flags, int fd, uint64_t offset);
long aspace_munmap(gaddr addr, size_t len);
long aspace_mprotect(gaddr addr, size_t len, int prot);
long aspace_mremap(gaddr old, size_t old_len, size_t new_len, int flags, gaddr new_addr);
long aspace_shmat(int id, gaddr addr, int flags);
long aspace_shmdt(gaddr addr);

/* Maps what a recording says was mapped: m as it was in the list, contents from fd (-1: anonymous), where the file starts at
 * `base`. 0 or -errno. */
long aspace_restore(const struct mapping *m, int fd, uint64_t base);

/* The same for anonymous memory that is mapped already: m->object, from m->offset on, at m->start, too. */
long aspace_restore_again(const struct mapping *m);
/* Where that page of shared memory is mapped, whoever owns it. */
bool aspace_find_page(uint64_t object, uint64_t offset, struct mapping *out);

/* A place for `len` bytes such that the loader may map several segments into it with MAP_FIXED: what ld.so gets from its
 * first mmap of a library. Nothing is mapped yet. `fd` (or -1) decides where, by file identity. 0 = no room. */
gaddr aspace_place(size_t len, size_t align, int fd);

/* The program's break: set once by the loader, which says where the program ends, moved by brk(). */
void aspace_set_brk(gaddr start);
gaddr aspace_brk(gaddr wanted);
void aspace_get_brk(gaddr *start, gaddr *end);
/* The heap between the two is in the list already. */
void aspace_put_brk(gaddr start, gaddr end);

/* Locks what the program has mapped, unless it is more than that. */
bool aspace_lock_memory(uint64_t most, bool on_fault);
/* The stack, which is mapped in full, may have `size` bytes from now on, and what it has used already: they are mapped, as far as
 * there is room. thread.stack_start says where it begins then. */
void aspace_limit_stack(uint64_t size, bool may_shrink);
/* Replay: it begins at `start`, if that makes it smaller, or larger. floor: where what is about to be mapped below it ends, or 0. */
void aspace_put_stack(gaddr start, bool smaller, gaddr floor);

/* Copy of the mapping that covers addr; false if there is none. */
bool aspace_find(gaddr addr, struct mapping *out);
/* Counted up whenever the list may say something else than before. */
extern uint64_t aspace_changes;
/* The same without a copy; caller holds cache_lock. NULL if there is none. */
const struct mapping *aspace_peek(gaddr addr);
/* The first mapping that ends above addr, or NULL; caller holds cache_lock. */
const struct mapping *aspace_next(gaddr addr);
/* Shared memory at addr becomes tracked; caller holds cache_lock. */
void aspace_track(gaddr addr);
/* The private mapping at addr shows that object; caller holds cache_lock. */
void aspace_show_shared(gaddr addr, uint64_t object);
/* [start, end) of such a mapping is borrowed, or no longer. Caller holds cache_lock. */
void aspace_borrow(gaddr start, gaddr end, bool borrowed);
/* Guards are there in [start, end), wherever it is mapped, or are gone. */
void aspace_guard(gaddr start, gaddr end, bool guarded);
/* Something else has been mapped there for the kernel: guards are put back. */
void aspace_guard_again(gaddr start, gaddr end);
/* What the kernel is asked for when the program asks for prot. */
int aspace_host_prot(int prot);
/* Private pages in [start, end) were changed though they cannot be written: kept translations of their file do not fit any more.
 * Caller holds cache_lock. */
void aspace_note_changed(gaddr start, gaddr end);
/* Gives the mapping that covers addr a name for /proc/self/maps. */
void aspace_name(gaddr addr, const char *name);
/* The i-th mapping in address order, cache windows (`runtime`) included. */
bool aspace_nth(size_t i, struct mapping *out);
/* Memory that looks like the guard of ours below the stack, if it is there. */
bool aspace_is_guard(const struct mapping *m);
/* Takes note of a mapping that exists already (vDSO). */
void aspace_adopt(gaddr start, size_t len, int prot, const char *name);

/* Whether the range touches memory of the runtime. */
bool aspace_is_runtime(gaddr start, size_t len);
/* Whether nothing is mapped there, neither the program's nor claimed. */
bool aspace_is_free(gaddr start, gaddr end);
/* engine_host.claim and unclaim: room for a cache window between the program's mappings. Caller holds cache_lock. */
bool aspace_claim(gaddr at, size_t len);
void aspace_unclaim(gaddr at, size_t len);

/* engine_host.kept_at. Caller holds cache_lock. */
struct kept_file;
bool aspace_kept_at(gaddr pc, struct kept_file *out);
/* engine_host.huge_code. Caller holds cache_lock. */
gaddr aspace_huge_code(void);

/* seed: decides where libraries go; the same for all programs of a user. */
void aspace_start(uint64_t seed);

#endif

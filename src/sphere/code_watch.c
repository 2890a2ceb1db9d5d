#include "sphere/code_watch.h"

#include <linux/mman.h>

#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "engine/hints.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_files.h"
#include "sphere/gate.h"
#include "sphere/sys/model.h"
#include "sphere/thread.h"

#define FLIP_LIMIT 40  /* a page written this often after translation is checked instead... */
#define PATIENCE 20000 /* ... until its blocks have been entered this often, which costs as much as a few flips... */
#define FLIPS_AGAIN 20 /* ... and again when it is written this often behind that */

struct watched {
    gaddr page; /* 0 = free slot; page 0 never holds code */
    uint8_t is_protected, checked;
    uint16_t flips;
};

uint64_t code_watch_protected;
static struct watched *table;
static uint64_t mask, used;

static struct watched *slot_of(gaddr page) {
    uint64_t i = (page * 0x9e3779b97f4a7c15ull >> 32) & mask;
    while (table[i].page && table[i].page != page) i = (i + 1) & mask;
    return &table[i];
}

static struct watched *find(gaddr page) {
    if (!table) return NULL;
    struct watched *w = slot_of(page);
    return w->page ? w : NULL;
}

static void grow(void) {
    struct watched *old = table;
    uint64_t old_n = table ? mask + 1 : 0;
    mask = old_n ? old_n * 2 - 1 : 1023;
    table = arena_pages((mask + 1) * sizeof *table);
    for (uint64_t i = 0; i < old_n; i++)
        if (old[i].page) *slot_of(old[i].page) = old[i];
    if (old) arena_free_pages(old, old_n * sizeof *table);
}

static struct watched *add(gaddr page) {
    if (!table || used * 2 > mask) grow();
    struct watched *w = slot_of(page);
    if (!w->page) {
        w->page = page;
        used++;
    }
    return w;
}

/* Protected pages by the low bits of their number: calls look here without the lock. */
#define NEAR_PAGES 4096
static uint32_t near_pages[NEAR_PAGES];

static uint32_t *near(gaddr page) { return &near_pages[page / PAGE_SIZE % NEAR_PAGES]; }

/* How often the blocks of checked pages may still be entered, by the low bits of their number: pages may share. */
static int32_t patience[NEAR_PAGES];

static int32_t *patience_of(gaddr page) { return &patience[page / PAGE_SIZE % NEAR_PAGES]; }

static void check_for_now(struct watched *w) {
    if (w->checked) return;
    cache_stats.pages_checked++;
    w->checked = 1;
    *patience_of(w->page) = PATIENCE;
}

static void count(struct watched *w, int by) {
    __atomic_add_fetch(near(w->page), (uint32_t)by, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&code_watch_protected, (uint64_t)by, __ATOMIC_SEQ_CST);
    w->is_protected = by > 0;
}

static void unprotect(struct watched *w) {
    if (!w->is_protected) return;
    const struct mapping *m = aspace_peek(w->page);
    if (m) SYS(mprotect, w->page, PAGE_SIZE, aspace_host_prot((int)m->prot));
    count(w, -1);
    track_opened(w->page, w->page + PAGE_SIZE);
}

bool code_watch_is_protected(gaddr page) {
    const struct watched *w = code_watch_protected ? find(page) : NULL;
    return w && w->is_protected;
}

/* Another thread waits in a call that will write here. */
static bool awaited(gaddr page) {
    struct thread *self = thread_self();
    for (struct thread *t = threads_first(); t; t = t->next) {
        if (t == self || !t->in_use || !__atomic_load_n(&t->in_call, __ATOMIC_ACQUIRE)) continue;
        uint64_t a[6];
        gate_args(t->tb, a);
        if (model_may_write(t->tb->gpr[RAX], a, page, page + PAGE_SIZE)) return true;
    }
    return false;
}

/* False: the kernel refuses (a sealed mapping, too many mappings), or a call under way would fail. Counted first: a thread
 * that enters a call from now on sees the page counted and waits for cache_lock. One whose in_call had not reached us yet is
 * seen by the second look, because mprotect interrupts every processor that runs the program. */
static bool protect(struct watched *w, const struct mapping *m) {
    if (w->is_protected) return true;
    count(w, 1);
    if (!awaited(w->page) && SYS(mprotect, w->page, PAGE_SIZE, aspace_host_prot((int)m->prot) & ~PROT_WRITE) == 0) {
        if (!awaited(w->page)) return true;
        unprotect(w);
    } else {
        count(w, -1);
    }
    return false;
}

/* Without a fault: signal handlers ask, too. */
static bool can_be_read(gaddr pc) {
    uint8_t byte;
    struct {
        uint64_t base, len;
    } here = {(uint64_t)&byte, 1}, there = {pc, 1};
    long self = SYS(getpid);
    return SYS(process_vm_readv, self, &here, 1, &there, 1, 0) != -EFAULT;
}

bool code_watch_code_at(gaddr pc, struct code_range *out) {
    const struct mapping *m = aspace_peek(pc);
    if (!m || !(m->prot & PROT_EXEC) || m->borrowed) return false;
    hints_add_code(pc, pc + 2 * PAGE_SIZE); /* no block is on more than two pages */
    out->end = m->end;
    out->checked = out->watched = false;
    out->patience = NULL;
    bool unseen = (m->flags & MAP_TYPE) != MAP_PRIVATE || code_files_is_loose(m); /* changes without a fault */
    if (!(m->prot & PROT_WRITE) && !unseen && !m->shows_shared) return true;
    if ((unseen || m->shows_shared) && !can_be_read(pc)) return false; /* the file has been cut off */
    out->end = PAGE_DOWN(pc) + PAGE_SIZE;                              /* every page is looked at by itself */
    struct watched *w = add(PAGE_DOWN(pc));
    if (unseen || w->flips >= FLIP_LIMIT) check_for_now(w);
    if (!w->checked && !protect(w, m)) check_for_now(w);
    out->checked = w->checked;
    out->watched = true;
    if (!unseen) out->patience = patience_of(w->page);
    return true;
}

static void try_without_checks(gaddr page) {
    struct watched *w = find(page);
    if (!w || !w->checked) return;
    w->checked = 0;
    cache_stats.pages_worn++;
    w->flips = FLIP_LIMIT - FLIPS_AGAIN;
    cache_invalidate_range(page, page + PAGE_SIZE);
}

void code_watch_worn(gaddr pc) {
    const struct block *b = cache_find(pc);
    gaddr last = b ? PAGE_DOWN(b->end - 1) : PAGE_DOWN(pc);
    try_without_checks(PAGE_DOWN(pc));
    if (last != PAGE_DOWN(pc)) try_without_checks(last);
}

void code_watch_forget(gaddr start, gaddr end) {
    if (!hints_may_be_code(start, end)) return;
    cache_invalidate_range(start, end);
    if (!table || !used) return;
    if (end - start > 1024 * PAGE_SIZE) {
        for (uint64_t i = 0; i <= mask; i++)
            if (table[i].page >= start && table[i].page < end) unprotect(&table[i]);
        return;
    }
    for (gaddr page = PAGE_DOWN(start); page < end; page += PAGE_SIZE) {
        struct watched *w = find(page);
        if (w) unprotect(w);
    }
}

static void written(struct watched *w) {
    if (w->flips < UINT16_MAX) w->flips++;
    cache_stats.pages_written++;
    cache_invalidate_range(w->page, w->page + PAGE_SIZE);
    unprotect(w);
}

bool code_watch_write_fault(gaddr addr, gaddr pc) {
    lock_take(&cache_lock);
    struct watched *w = find(PAGE_DOWN(addr));
    const struct mapping *m = aspace_peek(addr);
    bool ours = w && m && (m->prot & PROT_WRITE);
    if (ours) {
        if (PAGE_DOWN(pc) == w->page) check_for_now(w); /* code that writes into its own page */
        written(w);
    }
    lock_drop(&cache_lock);
    return ours;
}

static bool may_be_protected(gaddr start, gaddr end) {
    for (gaddr page = PAGE_DOWN(start); page < end; page += PAGE_SIZE)
        if (__atomic_load_n(near(page), __ATOMIC_RELAXED)) return true;
    return false;
}

void code_watch_before_kernel_write(gaddr start, size_t len) {
    if (unlikely(track_closes)) track_before_kernel_write(start, len);
    if (!code_watch_protected || !len) return;
    gaddr end = start + len;
    if (end < start) return;
    bool few = len <= 256 * PAGE_SIZE;
    if (few && !may_be_protected(start, end)) return;
    lock_take(&cache_lock);
    if (few) {
        for (gaddr page = PAGE_DOWN(start); page < end; page += PAGE_SIZE) {
            struct watched *w = find(page);
            if (w && w->is_protected) written(w);
        }
    } else {
        for (uint64_t i = 0; table && i <= mask; i++)
            if (table[i].is_protected && table[i].page + PAGE_SIZE > start && table[i].page < end) written(&table[i]);
    }
    lock_drop(&cache_lock);
}

void code_watch_before_any_kernel_write(void) {
    if (unlikely(track_closes)) track_before_any_kernel_write();
    if (!code_watch_protected) return;
    lock_take(&cache_lock);
    for (uint64_t i = 0; table && i <= mask; i++)
        if (table[i].is_protected) written(&table[i]);
    lock_drop(&cache_lock);
}

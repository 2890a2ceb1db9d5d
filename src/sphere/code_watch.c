#include "sphere/code_watch.h"

#include <linux/mman.h>

#include "engine/cache.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_files.h"
#include "sphere/gate.h"
#include "sphere/sys/model.h"
#include "sphere/thread.h"

#define FLIP_LIMIT 6 /* a page written this often after translation is checked instead */

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

static void unprotect(struct watched *w) {
    if (!w->is_protected) return;
    const struct mapping *m = aspace_peek(w->page);
    if (m) SYS(mprotect, w->page, PAGE_SIZE, aspace_host_prot((int)m->prot));
    w->is_protected = 0;
    code_watch_protected--;
}

/* False: the kernel refuses (a sealed mapping, too many mappings). */
static bool protect(struct watched *w, const struct mapping *m) {
    if (SYS(mprotect, w->page, PAGE_SIZE, aspace_host_prot((int)m->prot) & ~PROT_WRITE) != 0) return false;
    w->is_protected = 1;
    code_watch_protected++;
    return true;
}

/* Another thread waits in a call that will write here: protecting the page now would make the call fail. The mprotect came
 * first, so a thread that enters a call unseen by us sees the page protected. */
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

/* Protects the page if that works and disturbs nobody. */
static bool watch(struct watched *w, const struct mapping *m) {
    if (w->is_protected) return true;
    if (!protect(w, m)) return false;
    if (!awaited(w->page)) return true;
    unprotect(w);
    return false;
}

bool code_watch_code_at(gaddr pc, struct code_range *out) {
    const struct mapping *m = aspace_peek(pc);
    if (!m || !(m->prot & PROT_EXEC)) return false;
    out->end = m->end;
    out->checked = false;
    bool unseen = (m->flags & MAP_TYPE) != MAP_PRIVATE || code_files_is_loose(m); /* changes without a fault */
    if (!(m->prot & PROT_WRITE) && !unseen) return true;
    out->end = PAGE_DOWN(pc) + PAGE_SIZE; /* every page is looked at by itself */
    struct watched *w = add(PAGE_DOWN(pc));
    if (unseen || w->flips >= FLIP_LIMIT) w->checked = 1;
    if (!w->checked && !watch(w, m)) w->checked = 1;
    out->checked = w->checked;
    return true;
}

void code_watch_forget(gaddr start, gaddr end) {
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
    cache_invalidate_range(w->page, w->page + PAGE_SIZE);
    unprotect(w);
}

bool code_watch_write_fault(gaddr addr, gaddr pc) {
    lock_take(&cache_lock);
    struct watched *w = find(PAGE_DOWN(addr));
    const struct mapping *m = aspace_peek(addr);
    bool ours = w && m && (m->prot & PROT_WRITE);
    if (ours) {
        if (PAGE_DOWN(pc) == w->page) w->checked = 1; /* code that writes into its own page */
        written(w);
    }
    lock_drop(&cache_lock);
    return ours;
}

void code_watch_before_kernel_write(gaddr start, size_t len) {
    if (!code_watch_protected || !len) return;
    gaddr end = start + len;
    if (end < start) return;
    lock_take(&cache_lock);
    if (len > 256 * PAGE_SIZE) {
        for (uint64_t i = 0; table && i <= mask; i++)
            if (table[i].is_protected && table[i].page + PAGE_SIZE > start && table[i].page < end) written(&table[i]);
    } else {
        for (gaddr page = PAGE_DOWN(start); page < end; page += PAGE_SIZE) {
            struct watched *w = find(page);
            if (w && w->is_protected) written(w);
        }
    }
    lock_drop(&cache_lock);
}

void code_watch_before_any_kernel_write(void) {
    if (!code_watch_protected) return;
    lock_take(&cache_lock);
    for (uint64_t i = 0; table && i <= mask; i++)
        if (table[i].is_protected) written(&table[i]);
    lock_drop(&cache_lock);
}

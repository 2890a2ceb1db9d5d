#include "sphere/borrowed.h"

#include <linux/mman.h>

#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/channel.h"
#include "sphere/event_log.h"
#include "sphere/gate.h"

bool borrowed_any;

/* ---- borrowing ---- */

static bool is_private(const struct mapping *m) {
    return (m->flags & MAP_TYPE) == MAP_PRIVATE && !(m->flags & MAP_ANONYMOUS) && m->file.ino && !m->runtime;
}

static void borrow_run(const struct mapping *m, gaddr start, gaddr end) {
    aspace_borrow(start, end, true);
    shared_note(m);
    shared_close_pages(m, start, end - start);
    track_changed(start, end);
}

/* Pages of [start, end) that are ours in the file, or are not, become borrowed. */
static void borrow(gaddr start, gaddr end, bool ours) {
    const struct mapping *next;
    for (gaddr at = start; at < end && (next = aspace_next(at)) && next->start < end;) {
        struct mapping m = *next; /* the list changes */
        gaddr lo = MAX(m.start, at), stop = MIN(m.end, end);
        at = m.end;
        if (!m.shows_shared || m.borrowed || m.guarded) continue;
        for (gaddr run; lo < stop; lo = run) {
            bool fits = shared_owns(shared_page_of(&m, lo)) == ours;
            for (run = lo + PAGE_SIZE; run < stop && (shared_owns(shared_page_of(&m, run)) == ours) == fits;)
                run += PAGE_SIZE;
            if (fits) borrow_run(&m, lo, run);
        }
    }
}

/* again: also those that show it already. */
static void show(gaddr start, gaddr end, uint64_t object, bool again) {
    const struct mapping *m;
    lock_take(&cache_lock);
    for (gaddr at = start, stop; at < end && (m = aspace_next(at)) && m->start < end; at = stop) {
        stop = m->end;
        if (!is_private(m) || (m->shows_shared && !again) || shared_file(&m->file) != object) continue;
        borrowed_any = true;
        gaddr from = m->start;
        aspace_show_shared(from, object);
        borrow(from, stop, false);
    }
    lock_drop(&cache_lock);
}

void borrowed_show(uint64_t object) { show(0, LAYOUT_GUEST_END, object, true); }

/* Those that are mapped later begin so: there is nothing to look for the next time. */
void borrowed_show_shared(uint64_t object) {
    static uint64_t last;
    if (last != object) show(0, LAYOUT_GUEST_END, object, false);
    last = object;
}

void borrowed_show_new(const struct mapping *m) { show(m->start, m->end, shared_file(&m->file), false); }

void borrowed_dropped(gaddr start, gaddr end) {
    if (likely(!borrowed_any)) return;
    lock_take(&cache_lock);
    borrow(start, end, false);
    lock_drop(&cache_lock);
}

void borrowed_guarded(gaddr start, gaddr end) {
    struct mapping m;
    for (size_t i = 0; unlikely(borrowed_any) && aspace_nth(i, &m); i++)
        if (m.borrowed && m.guarded && m.start < end && m.end > start) borrowed_open(m.start, m.end);
}

struct view {                  /* n pages of a file, at most */
    uint64_t object, dev, ino; /* object 0: dev and ino tell which */
    uint64_t page, n;
};

static bool is_viewed(const struct mapping *m, const struct view *v) {
    if (!m->shows_shared) return false;
    return v->object ? m->object == v->object : m->file.dev == v->dev && m->file.ino == v->ino;
}

/* Where mappings show them. */
static void borrow_views(const struct view *v, bool ours) {
    const struct mapping *m;
    for (gaddr at = 0; (m = aspace_next(at));) {
        uint64_t first = m->offset / PAGE_SIZE, last = first + (m->end - m->start) / PAGE_SIZE;
        uint64_t from = MAX(first, v->page), to = MIN(last, v->page + v->n);
        gaddr start = m->start;
        bool shows = is_viewed(m, v) && from < to;
        at = m->end;
        if (shows) borrow(start + (from - first) * PAGE_SIZE, start + (to - first) * PAGE_SIZE, ours);
    }
}

void borrowed_cut(uint64_t dev, uint64_t ino, uint64_t size) {
    if (likely(!borrowed_any)) return;
    struct view behind = {.dev = dev, .ino = ino, .page = PAGE_UP(size) / PAGE_SIZE, .n = SHARED_ROOM};
    lock_take(&cache_lock);
    borrow_views(&behind, false);
    lock_drop(&cache_lock);
}

void borrowed_bus(gaddr addr) { borrowed_dropped(PAGE_DOWN(addr), PAGE_DOWN(addr) + PAGE_SIZE); }

void borrowed_give(struct shared_at at) {
    struct view page = {.object = at.object, .page = at.page, .n = 1};
    lock_take(&cache_lock);
    borrow_views(&page, true);
    lock_drop(&cache_lock);
}

void borrowed_give_all(void) { borrow(0, LAYOUT_GUEST_END, true); }

/* ---- copying ---- */

void borrowed_open(gaddr start, gaddr end) {
    lock_take(&cache_lock);
    struct mapping m = *aspace_peek(start);
    aspace_borrow(start, end, false);
    SYS(mprotect, start, end - start, aspace_host_prot((int)m.prot));
    track_changed(start, end);
    lock_drop(&cache_lock);
}

uint64_t borrowed_pages(gaddr start) {
    struct mapping m;
    return aspace_find(start, &m) && m.borrowed ? (m.end - PAGE_DOWN(start)) / PAGE_SIZE : 0;
}

struct io {
    uint64_t base, len;
};

static uint8_t found[PAGE_SIZE]; /* what was in the page that was copied last */

/* Makes the page at addr, which is open, the program's own. Without a fault of ours, if we may. False: it lies behind the file's
 * end. */
static bool copy_page(gaddr addr) {
    struct io here = {(uint64_t)found, PAGE_SIZE}, there = {addr, PAGE_SIZE};
    long self = SYS(getpid), got = SYS(process_vm_readv, self, &here, 1, &there, 1, 0);
    if (likely(got == PAGE_SIZE)) return SYS(process_vm_writev, self, &here, 1, &there, 1, 0) == PAGE_SIZE;
    if (got != -EPERM && got != -ENOSYS) return false;
    return guest_copy(found, (const void *)addr, PAGE_SIZE) == 0 && guest_copy((void *)addr, found, PAGE_SIZE) == 0;
}

/* From what was found: it may be gone again, with the end of the file. */
static void log_found(struct thread *t, gaddr addr) {
    struct event *e = event_new(t, EV_MEMORY, 0, sizeof(struct ev_memory) + PAGE_SIZE);
    struct ev_memory *m = (struct ev_memory *)(e + 1);
    *m = (struct ev_memory){.addr = addr, .len = PAGE_SIZE};
    memcpy(m + 1, found, PAGE_SIZE);
}

static void log_copied(struct thread *t, gaddr start, uint64_t pages) {
    struct event *e = event_new(t, EV_ACQUIRE, 0, sizeof(struct ev_page));
    *(struct ev_page *)(e + 1) = (struct ev_page){.page = start / PAGE_SIZE, .version = pages, .writable = PAGE_COPIED};
}

/* The kernel has as many mappings as it can have. */
static void copy_all_around(struct thread *t, gaddr addr) {
    struct mapping m;
    aspace_find(addr, &m);
    SYS(mprotect, m.start, m.end - m.start, PROT_READ | PROT_WRITE);
    log_copied(t, m.start, (m.end - m.start) / PAGE_SIZE);
    for (gaddr page = m.start; page < m.end; page += PAGE_SIZE)
        if (copy_page(page)) log_found(t, page);
    borrowed_open(m.start, m.end);
}

/* Owners of the file's pages need not be asked: what was found goes to the log. Only this page: others show what the file is when
 * they are touched. One that lies behind the end of the file stays as it is: somebody may make the file longer at any time. */
void borrowed_copy(struct thread *t, gaddr addr, bool faulted) {
    if (unlikely(SYS(mprotect, addr, PAGE_SIZE, PROT_READ | PROT_WRITE) != 0)) {
        copy_all_around(t, addr);
    } else if (copy_page(addr)) {
        log_copied(t, addr, 1);
        log_found(t, addr);
        borrowed_open(addr, addr + PAGE_SIZE);
    } else {
        if (!faulted) log_copied(t, addr, 0); /* else a SIGBUS is next */
        SYS(mprotect, addr, PAGE_SIZE, PROT_NONE);
    }
    stream_commit();
}

/* What is not there any more cannot be read, either, until we have been told. */
static bool is_whole(const struct mapping *m) {
    uint8_t byte;
    for (gaddr page = m->start; page < m->end; page += PAGE_SIZE)
        if (!shared_owns(shared_page_of(m, page)) && !guest_read(&byte, page, 1)) return false;
    return true;
}

bool borrowed_is_whole(void) {
    struct mapping m;
    if (likely(!borrowed_any)) return true;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (m.shows_shared && !m.borrowed && (aspace_host_prot((int)m.prot) & PROT_READ) && !is_whole(&m)) return false;
    return true;
}

/* Back end `mprotect`: pages are closed, made read-only behind the program's back; what writes to one opens it. A page that is
 * open, of memory that was collected before, counts as written.
 *
 * The kernel has a limit of mappings, and each border between open and closed makes one: runs that go on where the last one
 * ended double, and where very many pages are open, groups of pages are opened together. Without that, 32,000 pages written
 * here and there reach the limit. */
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "ckpt/rt/page_set.h"
#include "ckpt/rt/saver.h"
#include "ckpt/rt/track.h"
#include "ckpt/rt/track_parts.h"
#include "engine/cache.h"
#include "inproc/lock.h"
#include "inproc/sys.h"
#include "sphere/code_watch.h"

#define RUN_MOST 512     /* pages */
#define GROUPS_FROM 4096 /* runs: from here on 16 pages at once, from four times as many on 512 */
#define MAPPING_MOST (1ul << 36)

/* /proc/self/pagemap: one word a page */
#define PAGE_PRESENT (1ull << 63)
#define PAGE_SWAPPED (1ull << 62)
#define PAGE_OF_FILE (1ull << 61)

bool track_closes;

static struct page_set open_pages;
static int pagemap; /* the saver's */
static gaddr run_end;
static uint64_t run_pages, runs; /* length of the last run; runs since the last collection */

/* ---- opening; caller holds cache_lock ---- */

/* Pages that hold watched code stay closed for that reason; they count as open here. */
static bool open_range(const struct mapping *m, gaddr start, gaddr end) {
    int prot = aspace_host_prot((int)m->prot);
    page_set_add(&open_pages, start, end);
    while (start < end) {
        gaddr stop = end;
        if (code_watch_protected)
            for (stop = start; stop < end && !code_watch_is_protected(stop);) stop += PAGE_SIZE;
        if (stop > start && SYS(mprotect, start, stop - start, prot) != 0) return false;
        for (start = stop; start < end && code_watch_is_protected(start);) start += PAGE_SIZE;
    }
    return true;
}

/* The kernel has no more mappings for us: with all of it open there are fewer. */
static void open_all_of(const struct mapping *m) {
    open_range(m, m->start, m->end);
    track_changed(m->start, m->end);
}

static bool is_tracked(const struct mapping *m) {
    return m && !m->runtime && (m->flags & MAP_TYPE) == MAP_PRIVATE && (m->prot & PROT_WRITE);
}

/* How many pages to open for a write to `page`, and from where on. */
static void choose_run(gaddr page, gaddr *start, gaddr *end) {
    uint64_t group = runs < GROUPS_FROM ? 1 : runs < 4 * GROUPS_FROM ? 16 : RUN_MOST;
    run_pages = page == run_end ? MIN(run_pages * 2, RUN_MOST) : group;
    *start = page == run_end ? page : page / (group * PAGE_SIZE) * (group * PAGE_SIZE);
    *end = run_end = *start + run_pages * PAGE_SIZE;
    runs++;
}

bool track_write_fault(gaddr addr) {
    if (!track_closes) return false;
    gaddr page = PAGE_DOWN(addr), start, end;
    lock_take(&cache_lock);
    const struct mapping *m = aspace_peek(page);
    bool ours = is_tracked(m) && !page_set_has(&open_pages, page);
    if (ours) {
        choose_run(page, &start, &end);
        start = MAX(start, m->start);
        end = MIN(end, m->end);
        if (!open_range(m, start, end)) open_all_of(m);
    }
    bool is_free = ours && !(code_watch_protected && code_watch_is_protected(page));
    lock_drop(&cache_lock);
    return is_free;
}

static void open_between(gaddr start, gaddr end) {
    for (const struct mapping *m; (m = aspace_next(start)) && m->start < end; start = m->end)
        if (is_tracked(m) && !open_range(m, MAX(m->start, start), MIN(m->end, end))) open_all_of(m);
}

void track_before_kernel_write(gaddr start, size_t len) {
    gaddr end = PAGE_UP(start + len);
    start = PAGE_DOWN(start);
    if (!track_closes || end <= start) return;
    lock_take(&cache_lock);
    gaddr at = start, stop;
    bool all_open = page_set_next(&open_pages, &at, &stop, end) && at == start && stop == end;
    if (!all_open) open_between(start, end);
    lock_drop(&cache_lock);
}

void track_before_any_kernel_write(void) {
    if (!track_closes) return;
    lock_take(&cache_lock);
    for (const struct mapping *m = aspace_next(0); m; m = aspace_next(m->end))
        if (is_tracked(m)) open_all_of(m);
    lock_drop(&cache_lock);
}

/* The kernel keeps pieces apart that were one, if their pages came into being apart. Halves until it is one; the last one grows. */
static long move_pieces(gaddr from, size_t len, gaddr to, size_t more, int flags) {
    long got = SYS(mremap, from, len, len + more, flags | MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (got != -EFAULT || len == PAGE_SIZE) return got;
    size_t half = PAGE_UP(len / 2);
    long first = move_pieces(from, half, to, 0, flags);
    if (sys_failed(first)) return first;
    got = move_pieces(from + half, len - half, to + half, more, flags);
    return sys_failed(got) ? got : first;
}

long track_mremap(gaddr old, size_t old_len, size_t new_len, int flags, gaddr to) {
    long got = SYS(mremap, old, old_len, new_len, flags, to);
    if (got != -EFAULT || !track_closes || old_len <= PAGE_SIZE || new_len < old_len) return got;
    size_t last = old_len - PAGE_SIZE, more = new_len - old_len;
    if (flags & MREMAP_FIXED) {
        SYS(munmap, to, new_len); /* pieces would leave in between what is there */
        return move_pieces(old, old_len, to, more, flags & MREMAP_DONTUNMAP);
    }
    got = SYS(mremap, old + last, PAGE_SIZE, PAGE_SIZE + more, 0, 0);
    return sys_failed(got) ? got : (long)old;
}

static void opened(gaddr start, gaddr end) { page_set_add(&open_pages, start, end); }

/* ---- collecting, on the saver ---- */

static bool append_there(gaddr start, gaddr end, struct ranges *out) {
    uint64_t words[512];
    while (start < end) {
        size_t n = MIN((end - start) / PAGE_SIZE, ARRAY_LEN(words));
        long got = SYS(pread64, pagemap, words, n * 8, start / PAGE_SIZE * 8);
        if (got < 8) return false;
        for (size_t i = 0; i < (size_t)got / 8; i++, start += PAGE_SIZE)
            if ((words[i] & (PAGE_PRESENT | PAGE_SWAPPED)) && !(words[i] & PAGE_OF_FILE))
                ranges_append(out, start, start + PAGE_SIZE);
    }
    return true;
}

static bool append_written(gaddr start, gaddr end, bool is_new, struct ranges *out) {
    if (is_new) return append_there(start, end, out);
    for (gaddr stop; page_set_next(&open_pages, &start, &stop, end); start = stop)
        if (!append_there(start, stop, out)) return false;
    return true;
}

static enum collected collect(const struct mapping *m, gaddr start, gaddr end, bool is_new, struct ranges *out) {
    if (m->end - m->start > MAPPING_MOST) return COLLECT_FAILED;
    if (!append_written(start, end, is_new, out)) return COLLECT_FAILED;
    if (!(m->prot & PROT_WRITE)) return COLLECTED;
    lock_take(&cache_lock);
    page_set_remove(&open_pages, start, end);
    bool closed = SYS(mprotect, start, end - start, aspace_host_prot((int)m->prot) & ~PROT_WRITE) == 0;
    if (!closed) open_all_of(m);
    runs = run_end = 0;
    lock_drop(&cache_lock);
    return COLLECTED;
}

static void open_pagemap(void *arg) {
    pagemap = (int)SYS(openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    *(bool *)arg = pagemap >= 0;
}

static bool start(void) {
    bool fine = false;
    if (!saver_start()) return false;
    saver_do(open_pagemap, &fine);
    page_set_clear(&open_pages);
    track_closes = fine;
    return fine;
}

/* The child's pages are closed as the parent's are; all of its memory counts as changed, so they need not be known as open. */
static void forget(void) {
    lock_take(&cache_lock);
    for (const struct mapping *m = aspace_next(0); m; m = aspace_next(m->end))
        if (is_tracked(m)) open_range(m, m->start, m->end);
    track_closes = false;
    lock_drop(&cache_lock);
}

const struct track_backend track_mprotect = {
    .name = "mprotect", .start = start, .forget = forget, .collect = collect, .opened = opened};

#include "sphere/memory_hash.h"

#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#include "engine/cache.h"
#include "inproc/hash.h"
#include "inproc/pagemap_scan.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/debug.h"
#include "sphere/gate.h"
#include "sphere/shared.h"

/* /proc/self/pagemap: one word a page */
#define PAGE_PRESENT (1ull << 63)
#define PAGE_SWAPPED (1ull << 62)
#define PAGE_OF_FILE (1ull << 61) /* or shared: not what the program has written privately */

static bool is_zero(const uint64_t *page) {
    for (size_t i = 0; i < PAGE_SIZE / 8; i++)
        if (page[i]) return false;
    return true;
}

typedef void visit_page(gaddr at, const uint64_t *page, struct ev_hash *h);

static void add_page(gaddr at, const uint64_t *page, struct ev_hash *h) {
    h->hash += hash_bytes(page, PAGE_SIZE, at);
    h->bytes += PAGE_SIZE;
}

static void look_at_page(gaddr at, visit_page *visit, struct ev_hash *h) {
    uint64_t page[PAGE_SIZE / 8];
    bool good = debug_is_on ? shared_peek(page, at, sizeof page) : guest_copy(page, (const void *)at, sizeof page) == 0;
    if (good && !is_zero(page)) visit(at, page, h);
}

static void look_at_words(int pagemap, gaddr start, gaddr end, visit_page *visit, struct ev_hash *h) {
    uint64_t words[512];
    while (start < end) {
        size_t n = MIN((end - start) / PAGE_SIZE, ARRAY_LEN(words));
        long got = SYS(pread64, pagemap, words, n * 8, start / PAGE_SIZE * 8);
        if (got <= 0) return;
        for (size_t i = 0; i < (size_t)got / 8; i++) {
            bool there = words[i] & (PAGE_PRESENT | PAGE_SWAPPED);
            if (there && !(words[i] & PAGE_OF_FILE)) look_at_page(start + i * PAGE_SIZE, visit, h);
        }
        start += (gaddr)got / 8 * PAGE_SIZE;
    }
}

/* Sanitizers map 14 TB and more, of which next to nothing is there: holes are skipped by the kernel, if it can. */
static void look_at_range(int pagemap, gaddr start, gaddr end, visit_page *visit, struct ev_hash *h) {
    struct scan_region regions[64];
    while (start < end) {
        struct scan s = {.size = sizeof s,
                         .start = start,
                         .end = end,
                         .vec = (uint64_t)regions,
                         .vec_len = ARRAY_LEN(regions),
                         .category_inverted = IS_FILE | IS_ZERO,
                         .category_mask = IS_FILE | IS_ZERO,
                         .category_anyof_mask = IS_PRESENT | IS_SWAPPED};
        long n = SYS(ioctl, pagemap, SCAN_IOCTL, &s);
        if (n < 0) return look_at_words(pagemap, start, end, visit, h); /* an older kernel */
        for (long i = 0; i < n; i++) look_at_words(pagemap, regions[i].start, regions[i].end, visit, h);
        start = scanned_up_to(&s, n);
    }
}

bool memory_is_zero(const void *page) { return is_zero(page); }

static long open_pagemap(void) { return SYS(openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC); }

/* Of a process that has changed its user, these files belong to root, until it says that it may be dumped. */
static long open_pagemap_anyway(void) {
    long pagemap = open_pagemap();
    if (pagemap != -EACCES || SYS(prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) return pagemap;
    if (SYS(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) return pagemap;
    pagemap = open_pagemap();
    SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    return pagemap;
}

static bool is_private(const struct mapping *m) { return (m->flags & MAP_TYPE) == MAP_PRIVATE; }

static bool look_at_memory(bool with_shared, visit_page *visit, struct ev_hash *h) {
    long pagemap = open_pagemap_anyway();
    if (pagemap < 0) return false;
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (!m.runtime && !m.borrowed && (m.prot & PROT_READ) && (with_shared || (is_private(&m) && !m.shows_shared)))
            look_at_range((int)pagemap, m.start, m.end, visit, h);
    SYS(close, pagemap);
    return true;
}

bool memory_hash(struct ev_hash *h) {
    *h = (struct ev_hash){0, 0};
    return look_at_memory(false, add_page, h);
}

bool memory_hash_alone(struct ev_hash *h) {
    *h = (struct ev_hash){0, 0};
    return look_at_memory(true, add_page, h);
}

/* Calls and returns put the host's address below the program's return address. */
static void clear_host_words(gaddr at, const uint64_t *page, struct ev_hash *unused) {
    for (size_t i = 0; i < PAGE_SIZE / 8; i++) {
        gaddr word = at + i * 8;
        uint64_t above, none = 0;
        if (likely(!page[i] || !cache_contains(page[i])) || !guest_read(&above, word + 8, 8)) continue;
        if (cache_find_site(above).host) guest_write(word, &none, 8);
    }
}

void memory_clear_host_words(void) { look_at_memory(false, clear_host_words, NULL); }

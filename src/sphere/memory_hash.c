#include "sphere/memory_hash.h"

#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#include "inproc/hash.h"
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

static void add_page(struct ev_hash *h, gaddr at) {
    uint64_t page[PAGE_SIZE / 8];
    bool good = debug_is_on ? shared_peek(page, at, sizeof page) : guest_copy(page, (const void *)at, sizeof page) == 0;
    if (!good || is_zero(page)) return;
    h->hash += hash_bytes(page, sizeof page, at);
    h->bytes += PAGE_SIZE;
}

static void add_range(struct ev_hash *h, int pagemap, gaddr start, gaddr end) {
    uint64_t words[512];
    while (start < end) {
        size_t n = MIN((end - start) / PAGE_SIZE, ARRAY_LEN(words));
        long got = SYS(pread64, pagemap, words, n * 8, start / PAGE_SIZE * 8);
        if (got <= 0) return;
        for (size_t i = 0; i < (size_t)got / 8; i++) {
            bool there = words[i] & (PAGE_PRESENT | PAGE_SWAPPED);
            if (there && !(words[i] & PAGE_OF_FILE)) add_page(h, start + i * PAGE_SIZE);
        }
        start += (gaddr)got / 8 * PAGE_SIZE;
    }
}

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

static bool hash_of(struct ev_hash *h, bool with_shared) {
    *h = (struct ev_hash){0, 0};
    long pagemap = open_pagemap_anyway();
    if (pagemap < 0) return false;
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (!m.runtime && (m.prot & PROT_READ) && (with_shared || is_private(&m)))
            add_range(h, (int)pagemap, m.start, m.end);
    SYS(close, pagemap);
    return true;
}

bool memory_hash(struct ev_hash *h) { return hash_of(h, false); }

bool memory_hash_alone(struct ev_hash *h) { return hash_of(h, true); }

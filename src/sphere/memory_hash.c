#include "sphere/memory_hash.h"

#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/hash.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/gate.h"

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
    if (!guest_read(page, at, sizeof page) || is_zero(page)) return;
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

struct ev_hash memory_hash(void) {
    struct ev_hash h = {0, 0};
    long pagemap = SYS(openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return h;
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (!m.runtime && (m.prot & PROT_READ) && (m.flags & MAP_TYPE) == MAP_PRIVATE)
            add_range(&h, (int)pagemap, m.start, m.end);
    SYS(close, pagemap);
    return h;
}

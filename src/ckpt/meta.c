#include "ckpt/meta.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- checking ---- */

static bool bad(char why[256], const char *what) {
    snprintf(why, 256, "%s", what);
    return false;
}

static bool check_head(const struct meta_head *h, size_t n, char why[256]) {
    if (n < sizeof *h || h->magic != META_MAGIC) return bad(why, "is no checkpoint");
    if (h->version != META_VERSION) {
        snprintf(why, 256, "has version %u, this is a reader of version %d", h->version, META_VERSION);
        return false;
    }
    if (h->head_hash != XXH3_64bits(h, offsetof(struct meta_head, head_hash))) return bad(why, "has a damaged head");
    if (h->first > h->last) return bad(why, "stands for no checkpoint");
    return true;
}

/* The counts fit the size exactly; none can make the sum overflow. */
static bool check_sizes(const struct meta_head *h, size_t n, char why[256]) {
    uint64_t left = n - sizeof *h;
    if (h->n_dropped > left / sizeof(struct ckpt_range)) return bad(why, "is too short for its ranges");
    left -= h->n_dropped * sizeof(struct ckpt_range);
    if (h->n_pages > left / sizeof(struct meta_page)) return bad(why, "is too short for its pages");
    left -= h->n_pages * sizeof(struct meta_page);
    if (h->n_blocks > left / sizeof(struct meta_block) || h->n_blocks > UINT32_MAX)
        return bad(why, "is too short for its blocks");
    left -= h->n_blocks * sizeof(struct meta_block);
    return left == h->state_len ? true : bad(why, "has the wrong size");
}

static bool check_ranges(const struct meta *m, char why[256]) {
    uint64_t end = 0;
    for (size_t i = 0; i < m->head->n_dropped; i++) {
        const struct ckpt_range *r = &m->dropped[i];
        if (r->start >= r->end || (i && r->start <= end) || r->end > META_ADDRESS_END ||
            (r->start | r->end) % CKPT_PAGE)
            return bad(why, "has a wrong range");
        end = r->end;
    }
    return true;
}

static bool check_pages(const struct meta *m, char why[256]) {
    uint64_t blocks = 0;
    for (size_t i = 0; i < m->head->n_pages; i++) {
        const struct meta_page *p = &m->pages[i];
        if (p->address % CKPT_PAGE || p->address >= META_ADDRESS_END || !p->blocks || p->first != blocks ||
            (i && p->address <= p[-1].address))
            return bad(why, "has a wrong page");
        blocks += (unsigned)__builtin_popcountll(p->blocks);
    }
    return blocks == m->head->n_blocks ? true : bad(why, "has a wrong number of blocks");
}

static bool check_blocks(const struct meta *m, uint64_t n_slots, char why[256]) {
    for (size_t i = 0; i < m->head->n_blocks; i++)
        if (m->blocks[i].slot >= n_slots && m->blocks[i].slot != META_ZERO_SLOT)
            return bad(why, "names data that is not there");
    return true;
}

bool meta_check(struct meta *m, const void *bytes, size_t n, uint64_t n_slots, char why[256]) {
    const struct meta_head *h = bytes;
    if (!check_head(h, n, why) || !check_sizes(h, n, why)) return false;
    *m = (struct meta){.head = h, .size = n};
    m->dropped = (const struct ckpt_range *)(h + 1);
    m->pages = (const struct meta_page *)(m->dropped + h->n_dropped);
    m->blocks = (const struct meta_block *)(m->pages + h->n_pages);
    m->state = (const uint8_t *)(m->blocks + h->n_blocks);
    if (h->body_hash != XXH3_64bits(h + 1, n - sizeof *h)) return bad(why, "is damaged");
    return check_ranges(m, why) && check_pages(m, why) && check_blocks(m, n_slots, why);
}

bool meta_map(struct meta *m, int fd, uint64_t n_slots, char why[256]) {
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) return bad(why, "is no regular file");
    size_t n = (size_t)st.st_size;
    if (n < sizeof(struct meta_head)) return bad(why, "is no checkpoint");
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return bad(why, strerror(errno));
    if (!meta_check(m, p, n, n_slots, why)) {
        munmap(p, n);
        return false;
    }
    m->is_mapped = true;
    return true;
}

void meta_unmap(struct meta *m) {
    if (m->is_mapped) munmap((void *)m->head, m->size);
    *m = (struct meta){0};
}

/* ---- searching ---- */

bool range_holds(const struct ckpt_range *list, size_t n, uint64_t address) {
    size_t lo = 0, hi = n; /* the first that ends above address */
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (list[mid].end > address)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo < n && list[lo].start <= address;
}

bool meta_drops(const struct meta *m, uint64_t address) { return range_holds(m->dropped, m->head->n_dropped, address); }

size_t meta_first_from(const struct meta *m, uint64_t address) {
    size_t lo = 0, hi = m->head->n_pages;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (m->pages[mid].address >= address)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

const struct meta_page *meta_find(struct meta *m, uint64_t address) {
    size_t i = m->latest, n = m->head->n_pages;
    bool near = i < n && m->pages[i].address >= address && (i == 0 || m->pages[i - 1].address < address);
    if (!near) i = meta_first_from(m, address);
    m->latest = i;
    if (i == n || m->pages[i].address != address) return NULL;
    m->latest = i + 1;
    return &m->pages[i];
}

/* ---- drafts ---- */

static bool make_room(void *list, size_t n, size_t *room, size_t size) {
    if (n < *room) return true;
    size_t more = *room ? *room * 2 : 256;
    void *bigger = reallocarray(*(void **)list, more, size);
    if (!bigger) return false;
    *(void **)list = bigger;
    *room = more;
    return true;
}

bool draft_drop(struct draft *d, struct ckpt_range r) {
    struct ckpt_range *last = d->n_dropped ? &d->dropped[d->n_dropped - 1] : NULL;
    if (last && r.start <= last->end) {
        if (r.end > last->end) last->end = r.end;
        return true;
    }
    if (!make_room(&d->dropped, d->n_dropped, &d->dropped_room, sizeof r)) return false;
    d->dropped[d->n_dropped++] = r;
    return true;
}

bool draft_drops(const struct draft *d, uint64_t address) { return range_holds(d->dropped, d->n_dropped, address); }

bool draft_page(struct draft *d, uint64_t address) {
    if (!make_room(&d->pages, d->n_pages, &d->page_room, sizeof *d->pages)) return false;
    d->pages[d->n_pages++] = (struct meta_page){.address = address, .first = (uint32_t)d->n_blocks};
    return true;
}

bool draft_block(struct draft *d, unsigned i, struct meta_block b) {
    if (d->n_blocks >= UINT32_MAX) return errno = EFBIG, false;
    if (!make_room(&d->blocks, d->n_blocks, &d->block_room, sizeof b)) return false;
    d->blocks[d->n_blocks++] = b;
    d->pages[d->n_pages - 1].blocks |= 1ull << i;
    return true;
}

void draft_end_page(struct draft *d) {
    if (d->n_pages && !d->pages[d->n_pages - 1].blocks) d->n_pages--;
}

static int by_address(const void *a, const void *b) {
    uint64_t x = ((const struct meta_page *)a)->address, y = ((const struct meta_page *)b)->address;
    return x < y ? -1 : x > y;
}

static bool is_sorted(const struct draft *d) {
    for (size_t i = 1; i < d->n_pages; i++)
        if (d->pages[i].address <= d->pages[i - 1].address) return false;
    return true;
}

bool draft_sort(struct draft *d) {
    if (is_sorted(d)) return true;
    qsort(d->pages, d->n_pages, sizeof *d->pages, by_address);
    errno = EINVAL;
    if (!is_sorted(d)) return false;
    struct meta_block *sorted = calloc(d->n_blocks + 1, sizeof *sorted);
    if (!sorted) return false;
    size_t n = 0;
    for (size_t i = 0; i < d->n_pages; i++) {
        size_t count = (size_t)__builtin_popcountll(d->pages[i].blocks);
        memcpy(sorted + n, d->blocks + d->pages[i].first, count * sizeof *sorted);
        d->pages[i].first = (uint32_t)n;
        n += count;
    }
    free(d->blocks);
    d->blocks = sorted;
    d->block_room = d->n_blocks + 1;
    return true;
}

void draft_free(struct draft *d) {
    free(d->dropped);
    free(d->pages);
    free(d->blocks);
    *d = (struct draft){0};
}

/* ---- writing ---- */

static bool write_all(int fd, const void *from, size_t n, off_t at) {
    for (const char *p = from; n;) {
        ssize_t k = pwrite(fd, p, n, at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

bool meta_write(int fd, struct meta_head *head, const struct draft *d, const void *state, size_t state_len) {
    const struct iovec pieces[] = {{d->dropped, d->n_dropped * sizeof *d->dropped},
                                   {d->pages, d->n_pages * sizeof *d->pages},
                                   {d->blocks, d->n_blocks * sizeof *d->blocks},
                                   {(void *)state, state_len}};
    XXH3_state_t *hash = XXH3_createState();
    if (!hash) return false;
    XXH3_64bits_reset(hash);
    off_t at = sizeof *head;
    bool fine = true;
    for (size_t i = 0; fine && i < sizeof pieces / sizeof *pieces; i++) {
        if (!pieces[i].iov_len) continue;
        XXH3_64bits_update(hash, pieces[i].iov_base, pieces[i].iov_len);
        fine = write_all(fd, pieces[i].iov_base, pieces[i].iov_len, at);
        at += (off_t)pieces[i].iov_len;
    }
    head->magic = META_MAGIC;
    head->version = META_VERSION;
    head->n_dropped = d->n_dropped;
    head->n_pages = d->n_pages;
    head->n_blocks = d->n_blocks;
    head->state_len = state_len;
    head->body_hash = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    head->head_hash = XXH3_64bits(head, offsetof(struct meta_head, head_hash));
    return fine && write_all(fd, head, sizeof *head, 0);
}

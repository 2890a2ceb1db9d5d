#include "sphere/page_log.h"

#include <linux/fcntl.h>

#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/page_log.h"
#include "sphere/channel.h"
#include "sphere/contents.h"
#include "sphere/debug.h"
#include "sphere/forced_write.h"
#include "sphere/gate.h"
#include "sphere/objects.h"
#include "sphere/page_copies.h"
#include "sphere/sys/special.h"

#define BLOCKS (PAGE_LOG_PAGE / PAGE_LOG_BLOCK)
_Static_assert(PAGE_LOG_PAGE == PAGE_SIZE && BLOCKS == 64, "a bit a block");

bool page_log_is_written;

/* ---- writing ---- */

static struct page_copies copies; /* state: whether it is what this process left */
static int append_fd;

void page_log_start(int fd) {
    append_fd = fd;
    page_log_is_written = true;
}

static bool read_page(struct shared_at at, uint8_t *to) {
    if (!shared_is_file(at.object)) {
        gaddr addr = shared_address_of(at);
        return addr && shared_peek(to, addr, PAGE_SIZE);
    }
    uint64_t base = objects_tracked(at.object, NULL);
    return SYS(pread64, fd_own() + 1, to, PAGE_SIZE, base + at.page * PAGE_SIZE) == PAGE_SIZE;
}

bool page_log_is(struct shared_at at, uint64_t blocks, bool is_whole, const uint8_t *expected) {
    static const uint8_t nothing[PAGE_LOG_BLOCK];
    uint8_t now[PAGE_SIZE];
    if (!read_page(at, now)) return true; /* it is not mapped any more */
    for (uint64_t i = 0; i < BLOCKS; i++) {
        bool has = blocks >> i & 1;
        if ((has || is_whole) && memcmp(now + i * PAGE_LOG_BLOCK, has ? expected : nothing, PAGE_LOG_BLOCK) != 0)
            return false;
        if (has) expected += PAGE_LOG_BLOCK;
    }
    return true;
}

void page_log_released(struct shared_at at) {
    struct page_copy *c = page_copies_make(&copies, at);
    if (!c->bytes) c->bytes = arena_pages(PAGE_SIZE);
    c->state = read_page(at, c->bytes);
}

void page_log_shown(struct shared_at at) {
    struct page_copy *c = page_copies_find(&copies, at);
    if (c) c->state = false;
}

void page_log_forget(void) {
    for (uint64_t i = 0; i < copies.room; i++) copies.slots[i].state = false;
}

static void append(const struct page_log_record *r, const uint8_t *bytes) {
    struct {
        const void *base;
        uint64_t len;
    } v[1 + BLOCKS] = {{r, sizeof *r}};
    uint64_t n = 1, len = sizeof *r;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        if (!(r->blocks >> i & 1)) continue;
        v[n].base = bytes + i * PAGE_LOG_BLOCK;
        v[n++].len = PAGE_LOG_BLOCK;
        len += PAGE_LOG_BLOCK;
    }
    if (SYS(writev, append_fd, v, n) != (long)len) die("what processes share cannot be written: no room");
}

void page_log_acquired(struct shared_at at) {
    static const uint8_t nothing[PAGE_LOG_BLOCK];
    uint8_t now[PAGE_SIZE];
    const struct page_copy *c = page_copies_find(&copies, at);
    bool is_whole = !c || !c->state;
    if (!read_page(at, now)) die("a shared page of stream %lu cannot be read", the_stream.number);
    struct page_log_record r = {.stream = the_stream.number,
                                .event = stream_taken(),
                                .object = at.object,
                                .page = at.page,
                                .flags = is_whole ? PAGE_LOG_WHOLE : 0};
    for (uint64_t i = 0; i < BLOCKS; i++) {
        const uint8_t *before = is_whole ? nothing : c->bytes + i * PAGE_LOG_BLOCK;
        if (memcmp(now + i * PAGE_LOG_BLOCK, before, PAGE_LOG_BLOCK) != 0) r.blocks |= 1ull << i;
    }
    append(&r, now);
}

/* ---- reading ---- */

static int log_fd; /* 0: not yet open */
static uint64_t index_at, n_entries, next_entry;

static bool read_at(void *to, uint64_t n, uint64_t at) { return SYS(pread64, log_fd, to, n, at) == (long)n; }

static bool open_log(void) {
    struct page_log_head h;
    if (log_fd) return true;
    log_fd = debug_page_log(thread_self());
    if (log_fd > 0 && read_at(&h, sizeof h, 0) && h.magic == PAGE_LOG_MAGIC) {
        index_at = h.index;
        n_entries = h.n;
        return true;
    }
    log_fd = 0;
    return false;
}

static bool read_entry(uint64_t i, struct page_log_entry *e) {
    return i < n_entries && read_at(e, sizeof *e, index_at + i * sizeof *e);
}

static int compare(const struct page_log_entry *e, uint64_t stream, uint64_t event) {
    if (e->stream != stream) return e->stream < stream ? -1 : 1;
    return e->event < event ? -1 : e->event > event;
}

/* Pages come in the order of the index, as a rule. */
static bool find_entry(uint64_t stream, uint64_t event, struct page_log_entry *e) {
    uint64_t lo = 0, hi = n_entries, at = next_entry;
    while (lo < hi) {
        if (at < lo || at >= hi) at = lo + (hi - lo) / 2;
        if (!read_entry(at, e)) return false;
        int c = compare(e, stream, event);
        if (c == 0) {
            next_entry = at + 1;
            return true;
        }
        if (c < 0)
            lo = at + 1;
        else
            hi = at;
    }
    return false;
}

/* Where the page is in this worker: its file's contents, or memory of its own. */
static bool load(struct shared_at at, uint8_t *to) {
    if (!shared_is_file(at.object)) return shared_peek(to, shared_address_of(at), PAGE_SIZE);
    struct file_source s = contents_of(at.object, NULL);
    return SYS(pread64, s.fd, to, PAGE_SIZE, s.base + at.page * PAGE_SIZE) == PAGE_SIZE;
}

static bool store_in_file(struct shared_at at, uint64_t offset, const void *from, size_t n) {
    struct file_source s = contents_of(at.object, NULL);
    return SYS(pwrite64, s.fd, from, n, s.base + at.page * PAGE_SIZE + offset) == (long)n;
}

static bool store(struct shared_at at, const uint8_t *from) {
    if (shared_is_file(at.object)) return store_in_file(at, 0, from, PAGE_SIZE);
    gaddr to = shared_address_of(at);
    return shared_owns(at) ? forced_fill(to, from, PAGE_SIZE) : shared_poke(to, from, PAGE_SIZE);
}

bool page_log_put(struct shared_at at, uint64_t blocks, bool is_whole, const uint8_t *from) {
    uint8_t bytes[PAGE_SIZE];
    if (!shared_is_file(at.object) && !shared_address_of(at)) return true;
    if (is_whole)
        memset(bytes, 0, sizeof bytes);
    else if (!blocks || !load(at, bytes))
        return !blocks;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        if (!(blocks >> i & 1)) continue;
        memcpy(bytes + i * PAGE_LOG_BLOCK, from, PAGE_LOG_BLOCK);
        from += PAGE_LOG_BLOCK;
    }
    return store(at, bytes);
}

bool page_log_put_value(struct shared_at at, gaddr addr, const void *from, size_t n) {
    return shared_is_file(at.object) ? store_in_file(at, addr % PAGE_SIZE, from, n) : shared_poke(addr, from, n);
}

bool page_log_fill(struct shared_at at) {
    struct page_log_entry e;
    struct page_log_record r;
    uint8_t blocks[PAGE_SIZE];
    if (!open_log() || !find_entry(the_stream.number, stream_taken(), &e) || !read_at(&r, sizeof r, e.offset))
        return false;
    if (r.object != at.object || r.page != at.page) return false;
    uint64_t n = contents_bytes(r.blocks);
    if (n && !read_at(blocks, n, e.offset + sizeof r)) return false;
    return page_log_put(at, r.blocks, r.flags & PAGE_LOG_WHOLE, blocks);
}

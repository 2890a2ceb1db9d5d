#include "sphere/shared_left.h"

#include <linux/mman.h>

#include "ckpt/rt/save.h"
#include "engine/cache.h"
#include "inproc/arena.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/channel.h"
#include "sphere/checkpoint.h"
#include "sphere/gate.h"
#include "sphere/page_copies.h"

#define OBJECTS 1024      /* beyond, there are no checkpoints */
#define COPIES_MOST 16384 /* pages in memory; those that a checkpoint has can be done without */
#define POOL_STEP 64      /* pages */
#define GROUP SHARED_CHUNK_PAGES

/* ---- objects ---- */

struct object {
    uint64_t object;
    struct ev_mapped first;
    uint64_t cut;
    bool inherited, in_memory;
    bool
        written; /* the program can have written to it through mappings: what is mapped is copied for each checkpoint */
};

static struct object *objects;
static uint32_t n_objects;
static bool is_lost; /* something is not known that a checkpoint needs, and never will be */

static struct object *find_object(uint64_t object) {
    for (uint32_t i = 0; i < n_objects; i++)
        if (objects[i].object == object) return &objects[i];
    return NULL;
}

static struct object *add_object(uint64_t object) {
    struct object *o = find_object(object);
    if (o) return o;
    if (!objects) objects = arena_pages(OBJECTS * sizeof *objects);
    if (n_objects == OBJECTS) {
        is_lost = true;
        return NULL;
    }
    o = &objects[n_objects++];
    *o = (struct object){.object = object, .cut = UINT64_MAX, .in_memory = !shared_is_file(object), .written = true};
    return o;
}

static void set_written(struct object *o);

void left_object(uint64_t object, const struct ev_mapped *first, bool in_memory, bool writable) {
    if (!checkpoint_is_on) return;
    struct object *o = find_object(object);
    if (o) return writable ? set_written(o) : (void)0;
    o = add_object(object);
    if (!o) return;
    o->first = *first;
    o->in_memory = in_memory;
    o->written = writable;
}

static uint64_t address_of(const struct object *o, uint64_t page) {
    return SHARED_PAGES_AT + (uint64_t)(o - objects) * SHARED_PAGES_ROOM + page * PAGE_SIZE;
}

/* ---- copies ---- */

enum state {
    COPY_NONE,    /* the page is ours, and is what its mappings show */
    COPY_NEW,     /* what is left in it; no checkpoint has it */
    COPY_SAVED,   /* the last one has it; bytes may be NULL */
    COPY_UNKNOWN, /* there was no room */
};

static struct page_copies copies; /* bytes: `zero` is never written to */
static uint64_t n_unknown;
static uint8_t *pool, zero[PAGE_SIZE] __attribute__((aligned(8)));
static uint64_t n_bytes; /* pages of the pool in use */

static void free_bytes(struct page_copy *c) {
    if (c->bytes && c->bytes != zero) {
        *(uint8_t **)c->bytes = pool;
        pool = c->bytes;
        n_bytes--;
    }
    c->bytes = NULL;
}

/* What a checkpoint has, or nobody needs. */
static void make_room(void) {
    for (uint64_t i = 0; i < copies.room; i++)
        if (copies.slots[i].state == COPY_SAVED || copies.slots[i].state == COPY_NONE) free_bytes(&copies.slots[i]);
}

/* A page to write to; NULL: no room. */
static uint8_t *bytes_of(struct page_copy *c) {
    if (c->bytes && c->bytes != zero) return c->bytes;
    static uint32_t full; /* looking through all of them takes its time */
    if (n_bytes >= COPIES_MOST && full++ % 64 == 0) make_room();
    if (n_bytes >= COPIES_MOST) return NULL;
    if (!pool) {
        uint8_t *more = arena_try_pages(POOL_STEP * PAGE_SIZE);
        for (uint64_t i = 0; more && i < POOL_STEP; i++) {
            *(uint8_t **)(more + i * PAGE_SIZE) = pool;
            pool = more + i * PAGE_SIZE;
        }
    }
    if (!pool) return NULL;
    c->bytes = pool;
    pool = *(uint8_t **)pool;
    n_bytes++;
    return c->bytes;
}

static void set_state(struct page_copy *c, enum state state) {
    n_unknown += (state == COPY_UNKNOWN) - (uint64_t)(c->state == COPY_UNKNOWN);
    c->state = state;
}

/* What was left in the page can be looked at. */
static bool is_known(const struct page_copy *c) {
    return c && c->bytes && (c->state == COPY_NEW || c->state == COPY_SAVED);
}

/* From now on its pages are what mappings show. */
static void set_written(struct object *o) {
    if (o->written) return;
    o->written = true;
    for (uint64_t i = 0; i < copies.room; i++) {
        struct page_copy *c = &copies.slots[i];
        if (c->at.object == o->object && c->state == COPY_UNKNOWN && shared_owns(c->at)) set_state(c, COPY_NONE);
    }
}

void left_made_writable(gaddr start, gaddr end) {
    struct mapping m;
    if (!checkpoint_is_on || !shared_may_be(start, end - start)) return;
    for (size_t i = 0; aspace_nth(i, &m); i++) {
        struct object *o = m.tracked && m.start < end && m.end > start ? find_object(m.object) : NULL;
        if (o) set_written(o);
    }
}

static bool is_zero(const uint8_t *page) {
    for (uint64_t i = 0; i < PAGE_SIZE; i += 8)
        if (*(const uint64_t *)(page + i)) return false;
    return true;
}

/* Whether the program's code could read there: the kernel reads a set of signals for a request that it does not know. */
static bool is_readable(gaddr addr) {
    enum { NO_REQUEST = -1 };
    return SYS(rt_sigprocmask, NO_REQUEST, addr, NULL, 8) == -EINVAL;
}

/* Without a fault of ours: the pager takes no signals. Memory of memfd_secret() is read by nobody but its mappings; it cannot be cut off. */
static bool read_page(gaddr from, void *to) {
    struct {
        uint64_t base, len;
    } here = {(uint64_t)to, PAGE_SIZE}, there = {from, PAGE_SIZE};
    long self = SYS(getpid);
    if (SYS(process_vm_readv, self, &here, 1, &there, 1, 0) == PAGE_SIZE) return true;
    return is_readable(from) && guest_copy(to, (const void *)from, PAGE_SIZE) == 0;
}

/* The page at addr, which is open as far as the program may touch it. What cannot be read lies behind the end of its file. */
static void read_owned(const struct mapping *m, gaddr addr, uint8_t *to) {
    if (read_page(addr, to)) return;
    memset(to, 0, PAGE_SIZE);
    if (aspace_host_prot((int)m->prot) & PROT_READ) return;
    SYS(mprotect, addr, PAGE_SIZE, PROT_READ);
    if (!read_page(addr, to)) memset(to, 0, PAGE_SIZE);
    SYS(mprotect, addr, PAGE_SIZE, aspace_host_prot((int)m->prot));
}

/* The file that a call changes. */
static struct {
    uint64_t object;
    int fd;
} file;

void left_file(uint64_t object, int fd) {
    file.object = object;
    file.fd = fd;
}

/* Where a file ends there may be something behind its end in memory, which calls do not show. */
static bool read_end(int fd, uint64_t page, uint8_t *to) {
    static uint8_t *window;
    if (!window) window = arena_try_pages(PAGE_SIZE);
    if (!window) return false;
    long got = SYS(mmap, window, PAGE_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, page * PAGE_SIZE);
    bool has = got == (long)window && read_page((gaddr)window, to);
    SYS(mmap, window, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return has;
}

/* A page that is ours. False: the file cannot be read. */
static bool read_file(struct shared_at at, uint8_t *to) {
    struct file_id id;
    if (file.object != at.object || !file_identify(file.fd, &id) || shared_file(&id) != at.object) return false;
    long n = SYS(pread64, file.fd, to, PAGE_SIZE, at.page * PAGE_SIZE);
    if (n == 0) memset(to, 0, PAGE_SIZE);
    return n == 0 || n == PAGE_SIZE || (n > 0 && read_end(file.fd, at.page, to));
}

/* There is no room for what is in the page, if `addr` is 0; otherwise that can be seen there. */
static void give_up_copy(struct object *o, struct page_copy *c, gaddr addr) {
    set_state(c, addr ? COPY_NONE : COPY_UNKNOWN);
    if (addr) set_written(o);
}

static void keep_bytes(struct object *o, struct shared_at at, const uint8_t *page, gaddr addr) {
    struct page_copy *c = page_copies_make(&copies, at);
    if (is_zero(page)) {
        free_bytes(c);
        c->bytes = zero;
    } else {
        uint8_t *to = bytes_of(c);
        if (!to) return give_up_copy(o, c, addr);
        memcpy(to, page, PAGE_SIZE);
    }
    set_state(c, COPY_NEW);
}

static void keep(struct shared_at at, const struct mapping *m, gaddr addr) {
    static uint8_t page[PAGE_SIZE] __attribute__((aligned(8)));
    struct object *o = add_object(at.object);
    read_owned(m, addr, page);
    if (o) keep_bytes(o, at, page, 0);
}

void left_released(struct shared_at at) {
    struct mapping m;
    if (!checkpoint_is_on || !add_object(at.object)) return;
    gaddr addr = shared_address_of(at);
    struct page_copy *c = page_copies_find(&copies, at);
    if (addr && aspace_find(addr, &m))
        keep(at, &m, addr);
    else if (shared_is_file(at.object) && c && c->state == COPY_NONE)
        set_state(c, COPY_UNKNOWN);
}

void left_seen(gaddr addr) {
    struct mapping m;
    if (!checkpoint_is_on || !aspace_find(addr, &m) || !m.tracked) return;
    const struct object *o = find_object(m.object);
    if (o && !o->written) keep(shared_page_of(&m, addr), &m, addr);
}

static void find_difference(const uint8_t *now, const uint8_t *before, struct ev_contents *contents, uint8_t *bytes) {
    *contents = (struct ev_contents){0, before ? 0 : CONTENTS_WHOLE};
    if (!before) before = zero;
    for (uint64_t i = 0; i < PAGE_SIZE / CONTENTS_BLOCK; i++) {
        const uint8_t *block = now + i * CONTENTS_BLOCK;
        if (memcmp(block, before + i * CONTENTS_BLOCK, CONTENTS_BLOCK) == 0) continue;
        contents->blocks |= 1ull << i;
        memcpy(bytes, block, CONTENTS_BLOCK);
        bytes += CONTENTS_BLOCK;
    }
}

/* now: what is in the page; NULL: that is not known. */
static void note_acquired(struct object *o, struct shared_at at, const uint8_t *now, gaddr addr) {
    struct page_copy *c = page_copies_find(&copies, at);
    if (!shared_is_file(at.object) || (o->written && addr)) {
        if (c) set_state(c, COPY_NONE);
    } else if (now) {
        keep_bytes(o, at, now, addr);
    } else {
        set_state(page_copies_make(&copies, at), o->written ? COPY_NONE : COPY_UNKNOWN);
    }
}

bool left_acquired(struct shared_at at, gaddr addr, struct ev_contents *contents, uint8_t *bytes) {
    static uint8_t now[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
    struct mapping m;
    struct object *o = checkpoint_is_on ? add_object(at.object) : NULL;
    if (!o) return false;
    struct page_copy *c = page_copies_find(&copies, at);
    bool was_known = is_known(c);
    if (!addr) addr = shared_address_of(at);
    bool is_there = addr && aspace_find(addr, &m);
    if (is_there && guest_copy(now, (const void *)addr, PAGE_SIZE) != 0) read_owned(&m, addr, now);
    bool has = is_there || read_file(at, now);
    if (has) find_difference(now, was_known ? c->bytes : NULL, contents, bytes);
    note_acquired(o, at, has ? now : NULL, is_there ? addr : 0);
    return has;
}

/* ---- pages that are nobody's ---- */

static struct { /* what an event is about to tell; the page as it was when one looked */
    size_t size;
    struct ev_contents contents;
    uint8_t blocks[PAGE_SIZE], page[PAGE_SIZE] __attribute__((aligned(8)));
} look;

size_t left_look(struct shared_at at, const uint8_t *page) {
    look.size = 0;
    if (!checkpoint_is_on || is_known(page_copies_find(&copies, at))) return 0;
    if (n_bytes >= COPIES_MOST || !add_object(at.object)) return 0;
    if (guest_copy(look.page, page, PAGE_SIZE) != 0) return 0; /* its file has been cut off */
    find_difference(look.page, NULL, &look.contents, look.blocks);
    return look.size = sizeof look.contents + contents_bytes(look.contents.blocks);
}

bool left_saw(struct shared_at at, struct ev_contents *contents, uint64_t offset, const void *value, size_t n) {
    if (!checkpoint_is_on) return false;
    if (look.size) {
        *contents = look.contents;
        memcpy(contents + 1, look.blocks, look.size - sizeof *contents);
        keep_bytes(find_object(at.object), at, look.page, 0);
    }
    struct page_copy *c = page_copies_find(&copies, at);
    if (!is_known(c)) return false;
    if (memcmp(c->bytes + offset, value, n) == 0) return true;
    bool was_zero = c->bytes == zero;
    uint8_t *to = bytes_of(c);
    if (!to) {
        if (look.size) set_state(c, COPY_UNKNOWN); /* the log will not tell of it */
        return false;
    }
    if (was_zero) memset(to, 0, PAGE_SIZE);
    memcpy(to + offset, value, n);
    set_state(c, COPY_NEW);
    return true;
}

/* Anonymous memory that is unmapped is gone for this process. */
void left_unmapping(gaddr start, gaddr end) {
    if (!checkpoint_is_on || !shared_may_be(start, end - start)) return;
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++) {
        const struct object *o = m.tracked && shared_is_file(m.object) ? add_object(m.object) : NULL;
        if (!o || !o->written) continue;
        for (gaddr page = MAX(m.start, start); page < MIN(m.end, end); page += PAGE_SIZE) {
            struct shared_at at = shared_page_of(&m, page);
            if (shared_owns(at)) keep(at, &m, page);
        }
    }
}

/* ---- changes by calls ---- */

/* What is in a page of ours behind the call. */
static bool read_ours(struct shared_at at, gaddr addr, uint8_t *to) {
    struct mapping m;
    if (addr && aspace_find(addr, &m)) return read_owned(&m, addr, to), true;
    return read_file(at, to);
}

static void write_page(struct shared_at at, uint64_t from, const void *bytes, uint64_t len) {
    static uint8_t page[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
    struct object *o = find_object(at.object);
    struct page_copy *c = page_copies_find(&copies, at);
    bool is_ours = shared_owns(at), was_known = is_known(c);
    gaddr addr = is_ours && !was_known ? shared_address_of(at) : 0;
    if (addr && o->written && (!c || c->state == COPY_NONE)) return; /* mappings show it */
    if (!was_known) {
        bool has = is_ours && read_ours(at, addr, page);
        return has ? keep_bytes(o, at, page, addr) : set_state(page_copies_make(&copies, at), COPY_UNKNOWN);
    }
    bool was_zero = c->bytes == zero;
    uint8_t *to = bytes_of(c);
    if (!to) return give_up_copy(o, c, is_ours ? shared_address_of(at) : 0);
    if (was_zero) memset(to, 0, PAGE_SIZE);
    memcpy(to + from, bytes, len);
    set_state(c, COPY_NEW);
}

void left_written(uint64_t object, uint64_t offset, const void *bytes, uint64_t len) {
    if (!checkpoint_is_on || !add_object(object)) return;
    for (uint64_t done = 0, n; done < len; done += n) {
        uint64_t at = offset + done;
        n = MIN(len - done, PAGE_SIZE - at % PAGE_SIZE);
        write_page((struct shared_at){object, at / PAGE_SIZE}, at % PAGE_SIZE, (const uint8_t *)bytes + done, n);
    }
}

void left_cut(uint64_t object, uint64_t size) {
    struct object *o = checkpoint_is_on ? add_object(object) : NULL;
    if (!o) return;
    o->cut = MIN(o->cut, size);
    o->in_memory = false; /* what is not there is zero, but the store may have something else */
    for (uint64_t i = 0; i < copies.room; i++) {
        struct page_copy *c = &copies.slots[i];
        if (c->at.object != object || c->state == COPY_NONE || c->at.page * PAGE_SIZE + PAGE_SIZE <= size) continue;
        if (c->at.page * PAGE_SIZE < size) {
            write_page(c->at, size % PAGE_SIZE, zero, PAGE_SIZE - size % PAGE_SIZE);
            continue;
        }
        free_bytes(c);
        c->bytes = zero;
        set_state(c, COPY_NEW);
    }
}

void left_removed(gaddr start, gaddr end) {
    struct mapping m;
    for (size_t i = 0; checkpoint_is_on && aspace_nth(i, &m); i++) {
        struct object *o = m.object && m.start < end && m.end > start ? add_object(m.object) : NULL;
        if (o) o->in_memory = false;
    }
}

void left_after_fork(void) {
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (m.object && !m.shows_shared) add_object(m.object);
    for (uint32_t i = 0; i < n_objects; i++) objects[i].inherited = true;
    for (uint64_t i = 0; i < copies.room; i++) free_bytes(&copies.slots[i]);
    page_copies_drop(&copies);
    n_unknown = 0;
}

/* ---- pages that are ours ---- */

typedef void visit_page(const struct object *o, const struct mapping *m, uint64_t page, gaddr addr);

/* What is not in memory is zero, if nothing is swapped out. */
static bool has_swapped(void) {
    uint64_t facts[16] = {0}; /* struct sysinfo: the words 8 and 9 are all of swap space, and what is free of it */
    return SYS(sysinfo, facts) != 0 || facts[8] != facts[9];
}

static bool only_there;

static void find_there(const struct object *o, gaddr start, uint64_t n, uint8_t *there) {
    memset(there, 1, n);
    if (o->in_memory && only_there && SYS(mincore, start, n * PAGE_SIZE, there) != 0) memset(there, 1, n);
}

/* Pages of the group that the mapping shows, that are ours, and that were not seen in another mapping. */
static void visit_group(const struct mapping *m, uint64_t number, uint64_t seen[GROUP / 64], visit_page *visit) {
    uint8_t there[GROUP];
    uint64_t first = m->offset / PAGE_SIZE, end = first + (m->end - m->start) / PAGE_SIZE;
    const struct object *o = add_object(m->object);
    first = MAX(first, number * GROUP);
    end = MIN(end, number * GROUP + GROUP);
    if (!o || first >= end) return;
    gaddr start = m->start + (first * PAGE_SIZE - m->offset);
    find_there(o, start, end - first, there);
    for (uint64_t page = first; page < end; page++) {
        uint64_t bit = page % GROUP;
        if ((seen[bit / 64] >> bit % 64 & 1) || (m->tracked && !shared_owns((struct shared_at){m->object, page})))
            continue;
        seen[bit / 64] |= 1ull << bit % 64;
        if (there[page - first] & 1) visit(o, m, page, start + (page - first) * PAGE_SIZE);
    }
}

/* A file's pages that are ours and mapped nowhere have a copy, or are as they were when it was mapped first, or are not known. */
static bool has_copies(uint64_t object, uint64_t number, const uint64_t *bits, const uint64_t *seen) {
    for (uint64_t i = 0; shared_is_file(object) && i < GROUP; i++) {
        if (!((bits[i / 64] & ~seen[i / 64]) >> i % 64 & 1)) continue;
        const struct page_copy *c = page_copies_find(&copies, (struct shared_at){object, number * GROUP + i});
        if (c && (c->state == COPY_NONE || c->state == COPY_UNKNOWN)) return false;
    }
    return true;
}

static bool is_unshared(const struct mapping *m) { return m->object && !m->tracked && (m->flags & MAP_ANONYMOUS); }

/* Marks pages of the group that mappings before the kth show. */
static void mark_seen(uint64_t object, size_t k, uint64_t number, uint64_t seen[GROUP / 64]) {
    struct mapping m;
    for (size_t i = 0; i < k && aspace_nth(i, &m); i++) {
        uint64_t first = m.offset / PAGE_SIZE, end = first + (m.end - m.start) / PAGE_SIZE;
        if (m.object != object) continue;
        end = MIN(end, number * GROUP + GROUP);
        for (uint64_t page = MAX(first, number * GROUP); page < end; page++)
            seen[page % GROUP / 64] |= 1ull << page % 64;
    }
}

/* Anonymous memory that is nobody else's yet. */
static void visit_unshared(const struct mapping *m, size_t k, visit_page *visit) {
    uint64_t first = m->offset / PAGE_SIZE, end = first + (m->end - m->start) / PAGE_SIZE;
    for (uint64_t n = first / GROUP; n * GROUP < end; n++) {
        uint64_t seen[GROUP / 64] = {0};
        mark_seen(m->object, k, n, seen);
        visit_group(m, n, seen, visit);
    }
}

static bool visit_owned(visit_page *visit) {
    uint64_t object, number;
    const uint64_t *bits;
    struct mapping m;
    for (uint64_t i = 0; (bits = shared_nth_owned(&i, &object, &number)); i++) {
        uint64_t seen[GROUP / 64] = {0};
        const struct object *o = find_object(object);
        if (o && !o->written) continue; /* what has changed has a copy */
        for (size_t k = 0; aspace_nth(k, &m); k++)
            if (m.tracked && m.object == object) visit_group(&m, number, seen, visit);
        if (!has_copies(object, number, bits, seen)) return false;
    }
    for (size_t k = 0; aspace_nth(k, &m); k++)
        if (is_unshared(&m)) visit_unshared(&m, k, visit);
    return true;
}

static uint64_t counted;
static bool fits; /* the addresses that pages have in the store */

static void count_page(const struct object *o, const struct mapping *m, uint64_t page, gaddr addr) {
    counted++;
    fits &= page < SHARED_PAGES_ROOM / PAGE_SIZE;
}

bool left_can_be_saved(uint64_t most, uint64_t *pages) {
    if (is_lost || n_unknown) return false;
    counted = 0;
    fits = true;
    only_there = !has_swapped();
    bool is_known = visit_owned(count_page);
    *pages = counted;
    return is_known && fits && !is_lost && counted <= most;
}

/* ---- saving ---- */

/* Only what was zero when the stream began need not be stored where it is. */
static bool has_base(const struct object *o) { return o->inherited || shared_is_file(o->object); }

static void save_owned(const struct object *o, const struct mapping *m, uint64_t page, gaddr addr) {
    uint8_t *to = save_room();
    if (!to) return;
    if (guest_copy(to, (const void *)addr, PAGE_SIZE) != 0) read_owned(m, addr, to);
    save_put(address_of(o, page), has_base(o));
}

void left_save(void) {
    visit_owned(save_owned);
    for (uint64_t i = 0; i < copies.room; i++) {
        struct page_copy *c = &copies.slots[i];
        const struct object *o = c->state == COPY_NEW ? find_object(c->at.object) : NULL;
        if (o && o->written && shared_owns(c->at) && shared_address_of(c->at)) set_state(c, COPY_NONE); /* again */
        uint8_t *to = c->state == COPY_NEW && c->at.page < SHARED_PAGES_ROOM / PAGE_SIZE ? save_room() : NULL;
        if (!to) continue;
        memcpy(to, c->bytes, PAGE_SIZE);
        save_put(address_of(o, c->at.page), has_base(o));
    }
}

void left_saved(void) {
    for (uint64_t i = 0; i < copies.room; i++)
        if (copies.slots[i].state == COPY_NEW) copies.slots[i].state = COPY_SAVED;
}

/* ---- snapshots ---- */

static uint32_t each_run(uint64_t object, uint64_t number, const uint64_t *bits, struct snapshot_owned *to) {
    uint32_t n = 0;
    for (uint64_t i = 0, end; i < GROUP; i = end) {
        bool ours = bits[i / 64] >> i % 64 & 1;
        for (end = i + 1; end < GROUP && (bits[end / 64] >> end % 64 & 1) == ours;) end++;
        if (!ours) continue;
        if (to) to[n] = (struct snapshot_owned){object, number * GROUP + i, end - i};
        n++;
    }
    return n;
}

static uint32_t each_owned(struct snapshot_owned *to) {
    uint64_t object, number;
    const uint64_t *bits;
    uint32_t n = 0;
    for (uint64_t i = 0; (bits = shared_nth_owned(&i, &object, &number)); i++)
        n += each_run(object, number, bits, to ? to + n : NULL);
    return n;
}

void left_count(uint32_t *n, uint32_t *owned) {
    *n = n_objects;
    *owned = each_owned(NULL);
}

void left_write_objects(struct snapshot_object *to) {
    for (uint32_t i = 0; i < n_objects; i++)
        to[i] = (struct snapshot_object){.object = objects[i].object,
                                         .flags = objects[i].inherited ? SNAPSHOT_INHERITED : 0,
                                         .cut = objects[i].cut,
                                         .first = objects[i].first};
}

void left_write_owned(struct snapshot_owned *to) { each_owned(to); }

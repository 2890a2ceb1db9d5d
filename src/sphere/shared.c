#include "sphere/shared.h"

#include <linux/fcntl.h>
#include <linux/mman.h>

#include "engine/cache.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "recorder/order.h"
#include "sphere/borrowed.h"
#include "sphere/channel.h"
#include "sphere/code_watch.h"
#include "sphere/debug.h"
#include "sphere/debug_watch.h"
#include "sphere/frozen.h"
#include "sphere/gate.h"
#include "sphere/mode.h"
#include "sphere/shared_values.h"
#include "sphere/signals.h"
#include "sphere/sys/special.h"

bool shared_active;
gaddr shared_lowest = UINT64_MAX, shared_highest;
uint64_t shared_acquired;

/* ---- the tables of the sphere ---- */

static struct shared_tables *tables;

struct shared_tables *shared_tables(void) {
    if (likely(tables)) return tables;
    if (!the_channel || !the_channel->shares) return NULL;
    long got = SYS(mmap, LAYOUT_SHARED, sizeof *tables, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd_own() + 1, SHARED_OFFSET);
    if (got != (long)LAYOUT_SHARED) return NULL;
    return tables = (struct shared_tables *)LAYOUT_SHARED;
}

static bool is_over; /* nothing is tracked any more */

bool shared_is_on(void) { return !is_over && shared_tables(); }

void shared_set_ended(uint64_t stream) {
    if (stream >= SHARED_STREAMS) return;
    __atomic_fetch_or(&shared_tables()->ended[stream / 64], 1ull << (stream % 64), __ATOMIC_RELEASE);
}

bool shared_has_ended(uint64_t stream) {
    if (stream >= SHARED_STREAMS) return false;
    return __atomic_load_n(&shared_tables()->ended[stream / 64], __ATOMIC_ACQUIRE) >> (stream % 64) & 1;
}

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

/* Waits until whoever claimed an entry has filled it in. */
static void await_used(uint32_t *state) {
    for (int i = 0; __atomic_load_n(state, __ATOMIC_ACQUIRE) == CHUNK_BUSY; i++) {
        SYS(sched_yield);
        if (i == 10000000) die("an entry of shared memory was never filled in");
    }
}

static bool claim(uint32_t *state) {
    uint32_t expected = CHUNK_FREE;
    return __atomic_compare_exchange_n(state, &expected, CHUNK_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static uint64_t chunk_index(uint64_t object, uint64_t number, uint64_t first) {
    uint64_t slot = mix(mix(object, number), 1);
    for (uint64_t k = 0; k < SHARED_PROBES; k++) {
        uint64_t i = (slot + k) % SHARED_CHUNKS;
        struct shared_chunk *c = &tables->chunks[i];
        if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) == CHUNK_FREE && claim(&c->state)) {
            c->object = object;
            c->number = number;
            c->first = first;
            __atomic_store_n(&c->state, CHUNK_USED, __ATOMIC_RELEASE);
            return i;
        }
        await_used(&c->state);
        if (c->object == object && c->number == number) return i;
    }
    die("more memory is shared than can be recorded");
}

uint64_t shared_index(struct shared_at at, uint64_t first) {
    uint64_t chunk = chunk_index(at.object, at.page / SHARED_CHUNK_PAGES, first);
    return chunk * SHARED_CHUNK_PAGES + at.page % SHARED_CHUNK_PAGES;
}

uint64_t shared_object_slot(uint64_t object, bool *is_first) {
    for (uint64_t k = 0; k < SHARED_PROBES; k++) {
        uint64_t i = (mix(object, 2) + k) % SHARED_OBJECTS;
        struct shared_object *o = &tables->objects[i];
        *is_first = __atomic_load_n(&o->state, __ATOMIC_ACQUIRE) == CHUNK_FREE && claim(&o->state);
        if (*is_first) {
            o->object = object;
            __atomic_add_fetch(&tables->n_objects, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&o->state, CHUNK_USED, __ATOMIC_RELEASE);
            return i;
        }
        await_used(&o->state);
        if (o->object == object) return i;
    }
    return SHARED_OBJECTS;
}

bool shared_object_is_known(uint64_t object) {
    for (uint64_t k = 0; k < SHARED_PROBES; k++) {
        struct shared_object *o = &tables->objects[(mix(object, 2) + k) % SHARED_OBJECTS];
        if (__atomic_load_n(&o->state, __ATOMIC_ACQUIRE) == CHUNK_FREE) return false;
        await_used(&o->state);
        if (o->object == object) return true;
    }
    return false;
}

#define FILE_OBJECT (1ull << 63)

static uint64_t n_anonymous, anonymous_of;

uint64_t shared_count_anonymous(void) { return anonymous_of == the_stream.number ? n_anonymous : 0; /* forked since */ }

void shared_set_anonymous(uint64_t n) {
    n_anonymous = n;
    anonymous_of = the_stream.number;
}

uint64_t shared_anonymous(void) {
    shared_set_anonymous(shared_count_anonymous() + 1);
    return (the_stream.number << 24 | n_anonymous) & ~FILE_OBJECT;
}

uint64_t shared_file(const struct file_id *id) { return mix(mix(mix(3, id->dev), id->ino), id->birth) | FILE_OBJECT; }

bool shared_is_file(uint64_t object) { return object & FILE_OBJECT; }

bool shared_has_files(void) { return shared_is_on() && __atomic_load_n(&tables->n_objects, __ATOMIC_RELAXED) != 0; }

/* ---- what is owned ---- */

struct owned { /* of one chunk */
    uint64_t object, number;
    uint64_t bits[SHARED_CHUNK_PAGES / 64];
};

static struct owned *owned; /* by hash; object 0: free */
static uint64_t owned_mask, owned_used;

static struct owned *owned_slot(uint64_t object, uint64_t number) {
    uint64_t i = mix(object, number) & owned_mask;
    while (owned[i].object && (owned[i].object != object || owned[i].number != number)) i = (i + 1) & owned_mask;
    return &owned[i];
}

static void owned_grow(void) {
    struct owned *old = owned;
    uint64_t n = old ? owned_mask + 1 : 0;
    owned_mask = n ? n * 2 - 1 : 63;
    owned = arena_pages((owned_mask + 1) * sizeof *owned);
    for (uint64_t i = 0; i < n; i++)
        if (old[i].object) *owned_slot(old[i].object, old[i].number) = old[i];
    if (old) arena_free_pages(old, n * sizeof *old);
}

static uint64_t *owned_word(struct shared_at at, bool make) {
    uint64_t number = at.page / SHARED_CHUNK_PAGES;
    if (make && (!owned || owned_used * 2 > owned_mask)) owned_grow();
    if (!owned) return NULL;
    struct owned *o = owned_slot(at.object, number);
    if (!o->object) {
        if (!make) return NULL;
        o->object = at.object;
        o->number = number;
        owned_used++;
    }
    return &o->bits[at.page % SHARED_CHUNK_PAGES / 64];
}

bool shared_owns(struct shared_at at) {
    if (unlikely(is_over)) return true; /* all is accessible */
    uint64_t *w = owned_word(at, false);
    return w && (*w >> (at.page % 64) & 1);
}

static void disown_all(void) {
    for (uint64_t i = 0; owned && i <= owned_mask; i++) memset(owned[i].bits, 0, sizeof owned[i].bits);
}

/* ---- protections ---- */

struct shared_at shared_page_of(const struct mapping *m, gaddr addr) {
    return (struct shared_at){m->object, (m->offset + (addr - m->start)) / PAGE_SIZE};
}

/* Code that is not ours is not there, so it has no translations: running it faults, and translating looks no further. */
void shared_close_pages(const struct mapping *m, gaddr start, size_t len) {
    if (m->prot & PROT_EXEC) code_watch_forget(start, start + len);
    SYS(mprotect, start, len, PROT_NONE);
}

void shared_note(const struct mapping *m) {
    shared_active = true;
    shared_lowest = MIN(shared_lowest, m->start);
    shared_highest = MAX(shared_highest, m->end);
}

static bool stays_open; /* for now */

void shared_reprotect(gaddr start, gaddr end) {
    const struct mapping *m;
    for (gaddr at = start; at < end && (m = aspace_next(at)) && m->start < end; at = m->end) {
        if (!m->tracked && !m->borrowed) continue;
        shared_note(m);
        if (unlikely(stays_open)) continue;
        gaddr stop = MIN(m->end, end), lo = MAX(m->start, at);
        if (m->borrowed) {
            shared_close_pages(m, lo, stop - lo);
            continue;
        }
        for (gaddr run; lo < stop; lo = run) { /* runs of pages that are not owned */
            bool ours = shared_owns(shared_page_of(m, lo));
            for (run = lo + PAGE_SIZE; run < stop && shared_owns(shared_page_of(m, run)) == ours;) run += PAGE_SIZE;
            if (!ours) shared_close_pages(m, lo, run - lo);
        }
    }
}

/* ---- views ---- */

/* Where the mapping shows the page; 0: it does not. */
static gaddr address_in(const struct mapping *m, struct shared_at at) {
    uint64_t first = m->offset / PAGE_SIZE, n = (m->end - m->start) / PAGE_SIZE;
    if (!m->tracked || m->object != at.object || at.page < first || at.page - first >= n) return 0;
    return m->start + (at.page - first) * PAGE_SIZE;
}

/* The next mapping that may be tracked, at or above `from`. Caller holds cache_lock. */
static const struct mapping *next_near(gaddr from) {
    const struct mapping *m = aspace_next(MAX(from, shared_lowest));
    return m && m->start < shared_highest ? m : NULL;
}

gaddr shared_address_of(struct shared_at at) {
    gaddr addr = 0;
    lock_take(&cache_lock);
    const struct mapping *m;
    for (gaddr from = 0; !addr && (m = next_near(from)); from = m->end) addr = address_in(m, at);
    lock_drop(&cache_lock);
    return addr;
}

void shared_each_view(struct shared_at at, void (*visit)(const struct mapping *m, gaddr addr)) {
    lock_take(&cache_lock);
    const struct mapping *m;
    for (gaddr from = 0; (m = next_near(from)); from = m->end) {
        gaddr addr = address_in(m, at);
        if (addr) visit(m, addr);
    }
    lock_drop(&cache_lock);
}

static void close_view(const struct mapping *m, gaddr addr) { shared_close_pages(m, addr, PAGE_SIZE); }

static void open_view(const struct mapping *m, gaddr addr) {
    SYS(mprotect, addr, PAGE_SIZE, aspace_host_prot((int)m->prot));
    if (unlikely(debug_is_on)) watch_came(addr);
}

void shared_take(struct shared_at at) {
    *owned_word(at, true) |= 1ull << (at.page % 64);
    shared_each_view(at, open_view);
}

void shared_give(struct shared_at at) {
    if (unlikely(borrowed_any)) borrowed_give(at);
    uint64_t *w = owned_word(at, false);
    if (w) *w &= ~(1ull << (at.page % 64));
    shared_each_view(at, close_view);
}

static void open_all(uint64_t object) {
    lock_take(&cache_lock);
    const struct mapping *m;
    for (gaddr from = 0; (m = next_near(from)); from = m->end) {
        if (!m->tracked || m->object != object) continue;
        SYS(mprotect, m->start, m->end - m->start, aspace_host_prot((int)m->prot));
        shared_reprotect(m->start, m->end);
    }
    lock_drop(&cache_lock);
}

void shared_own(uint64_t object, uint64_t n) {
    shared_set_owned(object, 0, n);
    open_all(object);
}

/* ---- processes ---- */

static bool is_inheritable(const struct mapping *m) { return m->object && !m->tracked && (m->flags & MAP_ANONYMOUS); }

void shared_before_fork(void (*claim_pages)(uint64_t object, uint64_t page, uint64_t n)) {
    if (!the_channel || !shared_is_on()) return;
    lock_take(&cache_lock);
    const struct mapping *m;
    for (gaddr from = 0; (m = aspace_next(from)); from = m->end) {
        if (!is_inheritable(m)) continue;
        shared_note(m);
        aspace_track(m->start);
        uint64_t first = m->offset / PAGE_SIZE, n = (m->end - m->start) / PAGE_SIZE;
        if (claim_pages) claim_pages(m->object, first, n);
        for (uint64_t i = first; i < first + n; i++)
            *owned_word((struct shared_at){m->object, i}, true) |= 1ull << (i % 64);
    }
    lock_drop(&cache_lock);
}

void shared_each_owned(struct thread *t, uint8_t flags,
                       void (*visit)(struct thread *t, struct shared_at at, uint8_t flags)) {
    for (uint64_t i = 0; owned && i <= owned_mask; i++)
        for (uint64_t page = 0; owned[i].object && page < SHARED_CHUNK_PAGES; page++)
            if (owned[i].bits[page / 64] >> (page % 64) & 1)
                visit(t, (struct shared_at){owned[i].object, owned[i].number * SHARED_CHUNK_PAGES + page}, flags);
}

const uint64_t *shared_nth_owned(uint64_t *i, uint64_t *object, uint64_t *number) {
    for (; owned && *i <= owned_mask; ++*i) {
        const struct owned *o = &owned[*i];
        *object = o->object;
        *number = o->number;
        for (uint64_t k = 0; o->object && k < ARRAY_LEN(o->bits); k++)
            if (o->bits[k]) return o->bits;
    }
    return NULL;
}

void shared_stay_open(bool open) {
    stays_open = open;
    if (open) return;
    lock_take(&cache_lock);
    shared_reprotect(0, LAYOUT_GUEST_END);
    lock_drop(&cache_lock);
}

void shared_set_owned(uint64_t object, uint64_t page, uint64_t n) {
    for (uint64_t i = page; i < page + n; i++) *owned_word((struct shared_at){object, i}, true) |= 1ull << (i % 64);
}

void shared_close_all(void) {
    lock_take(&cache_lock);
    const struct mapping *m;
    for (gaddr from = 0; (m = aspace_next(from)); from = m->end)
        if (m->tracked) shared_close_pages(m, m->start, m->end - m->start);
    lock_drop(&cache_lock);
}

void shared_disown_all(void) {
    if (!shared_active) return;
    frozen_end_all();
    lock_take(&cache_lock);
    if (unlikely(borrowed_any)) borrowed_give_all();
    disown_all();
    shared_reprotect(0, LAYOUT_GUEST_END);
    lock_drop(&cache_lock);
}

void shared_abandon(void) {
    is_over = true;
    if (!shared_active) return;
    frozen_end_all();
    shared_active = false;
    shared_highest = 0;
    lock_take(&cache_lock);
    const struct mapping *m;
    for (gaddr from = 0; (m = aspace_next(from)); from = m->end)
        if (m->tracked || m->borrowed) SYS(mprotect, m->start, m->end - m->start, aspace_host_prot((int)m->prot));
    lock_drop(&cache_lock);
}

/* ---- accesses ---- */

bool shared_is_closed(gaddr addr) {
    if (likely(!shared_may_be(addr, 1))) return false;
    const struct mapping *m = aspace_peek(addr);
    return m && (m->borrowed || (m->tracked && !shared_owns(shared_page_of(m, addr))));
}

bool shared_peek(void *to, gaddr from, size_t n) {
    bool closed = shared_is_closed(from) || shared_is_bus(from);
    if (closed) SYS(mprotect, PAGE_DOWN(from), PAGE_SIZE, PROT_READ);
    bool good = guest_copy(to, (const void *)from, n) == 0;
    if (closed) SYS(mprotect, PAGE_DOWN(from), PAGE_SIZE, PROT_NONE);
    return good;
}

/* Memory of this process as a file: what is written there goes to pages that are closed, too. -1: there is none. */
static int own_memory(void) {
    static int fd = -1;
    static long opened_by; /* a copy of the process has to open its own */
    long self = SYS(getpid);
    if (opened_by == self) return fd;
    if (fd >= 0) SYS(close, fd);
    opened_by = self;
    return fd = (int)SYS(openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC);
}

bool shared_poke(gaddr to, const void *from, size_t n) {
    int fd = own_memory(); /* opening and closing the page takes ten times as long */
    if (fd >= 0 && SYS(pwrite64, fd, from, n, to) == (long)n) return true;
    SYS(mprotect, PAGE_DOWN(to), PAGE_SIZE, PROT_READ | PROT_WRITE);
    bool good = guest_copy((void *)to, from, n) == 0;
    SYS(mprotect, PAGE_DOWN(to), PAGE_SIZE, PROT_NONE);
    return good;
}

bool shared_fault(struct thread *t, gaddr addr, uint64_t err) {
    struct mapping m;
    if (likely(!shared_may_be(addr, 1)) || !aspace_find(addr, &m) || !(m.tracked || m.borrowed)) return false;
    uint32_t needed = err & PF_WRITE ? PROT_WRITE : PROT_READ | PROT_WRITE | PROT_EXEC;
    struct shared_at at = shared_page_of(&m, addr);
    if (!(m.prot & needed) || (!m.borrowed && shared_owns(at))) return false;
    if (unlikely(m.borrowed) && shared_is_bus(addr)) return true;
    if (unlikely(debug_is_on)) debug_op(t, false);
    if (unlikely(m.borrowed)) return the_mode->copy(t, PAGE_DOWN(addr), true), true;
    struct value_access a;
    bool is_simple = values_decode(t, &a) && PAGE_DOWN(a.addr) == PAGE_DOWN(addr);
    if (is_simple && the_mode->access(t, at, &a, true)) {
        values_note(&a);
        return true;
    }
    shared_acquired++;
    t->access_will_do = is_simple;
    the_mode->acquire(t, at, PAGE_DOWN(addr));
    t->access_will_do = false;
    return true;
}

/* The first page of [start, end) that is tracked, mapped for some use, and not owned, or is borrowed (object 0). */
static bool find_missing(gaddr start, gaddr end, struct shared_at *at, gaddr *addr) {
    bool found = false;
    lock_take(&cache_lock);
    const struct mapping *m;
    for (gaddr from = start; !found && from < end && (m = aspace_next(from)) && m->start < end; from = m->end) {
        if (!(m->tracked || m->borrowed) || !m->prot) continue;
        gaddr stop = MIN(m->end, end);
        for (gaddr p = MAX(m->start, PAGE_DOWN(from)); !found && p < stop; p += PAGE_SIZE) {
            *at = shared_page_of(m, p);
            *addr = p;
            found = m->borrowed || !shared_owns(*at);
            if (m->borrowed) at->object = 0;
        }
    }
    lock_drop(&cache_lock);
    return found;
}

static bool is_tracked(gaddr start, gaddr end) {
    bool found = false;
    lock_take(&cache_lock);
    const struct mapping *m;
    for (gaddr from = start; !found && (m = aspace_next(from)) && m->start < end; from = m->end)
        found = m->tracked || m->borrowed;
    lock_drop(&cache_lock);
    return found;
}

void shared_hold(gaddr start, size_t len) {
    gaddr end = start + len, addr;
    struct shared_at at;
    if (!shared_may_be(start, len)) return;
    if (end < start) end = UINT64_MAX;
    if (!is_tracked(start, end)) return;
    struct thread *t = thread_self();
    bool lent = t->turn_lent;
    if (lent) { /* who owns what can only be told by who has the turn */
        order_leave_call(t);
        t->turn_lent = false;
    }
    while (find_missing(start, end, &at, &addr)) {
        if (likely(at.object)) {
            shared_acquired++;
            the_mode->acquire(t, at, addr);
            continue;
        }
        the_mode->copy(t, addr, false);
        if (borrowed_pages(addr))
            start = addr + PAGE_SIZE; /* there is nothing */
        else
            shared_acquired++;
    }
    if (lent) {
        t->turn_lent = true;
        order_enter_call(t, false);
    }
}

static bool find_missing_of_file(uint64_t object, uint64_t first, uint64_t end, struct shared_at *at) {
    for (uint64_t i = first; i < end; i++) {
        *at = (struct shared_at){object, i};
        if (!shared_owns(*at)) return true;
    }
    return false;
}

void shared_hold_file(struct thread *t, uint64_t object, uint64_t start, uint64_t len) {
    struct shared_at at;
    if (!shared_is_on()) return;
    shared_active = true;
    while (len && find_missing_of_file(object, start / PAGE_SIZE, (start + len + PAGE_SIZE - 1) / PAGE_SIZE, &at)) {
        shared_acquired++;
        the_mode->acquire(t, at, 0);
    }
    for (uint64_t i = start / PAGE_SIZE; frozen_any && i <= (start + len) / PAGE_SIZE; i++)
        frozen_end((struct shared_at){object, i}); /* the file is about to change, and its views with it */
}

/* ---- beyond the end of a file ---- */

static gaddr bus_page; /* closed until it is touched; 0: none */

void shared_expect_bus(gaddr addr) {
    struct mapping m;
    if (bus_page == PAGE_DOWN(addr) || !aspace_find(addr, &m) || !m.file.ino) return;
    shared_had_bus();
    bus_page = PAGE_DOWN(addr);
    SYS(mprotect, bus_page, PAGE_SIZE, PROT_NONE);
}

bool shared_is_bus(gaddr addr) { return unlikely(bus_page != 0) && PAGE_DOWN(addr) == bus_page; }

void shared_had_bus(void) {
    if (likely(!bus_page)) return;
    lock_take(&cache_lock);
    const struct mapping *m = aspace_peek(bus_page);
    if (m) SYS(mprotect, bus_page, PAGE_SIZE, aspace_host_prot((int)m->prot));
    if (m) shared_reprotect(bus_page, bus_page + PAGE_SIZE);
    lock_drop(&cache_lock);
    bus_page = 0;
}

#include "sphere/debug_watch.h"

#include <linux/mman.h>

#include "ckpt/rt/track.h"
#include "engine/engine.h"
#include "engine/store_filter.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/shared.h"

#define NONE UINT32_MAX
#define OPEN_MAX 64
#define HOT 32 /* a page that was opened so often is filtered */

struct page {
    gaddr at; /* 0: free slot */
    uint8_t *was;
    uint32_t first; /* of the watchpoints on it, in links */
    bool reads;     /* reads are watched, too */
    bool is_there;  /* `was` holds what was in it */
    bool is_mapped;
    bool is_open;
    bool is_filtered; /* never closed to the program: its stores are looked at instead */
    uint32_t opened;  /* how often; of no interest once it is filtered */
};

struct link {
    uint32_t watch, next;
};

struct list { /* grows */
    struct worker_break *items;
    size_t n, room;
};

static struct list breaks, watches; /* breaks: a hash table by address, addr 0 = free */
static size_t n_breaks;
static struct page *pages;
static size_t n_pages, page_room;
static struct link *links;
static size_t n_links, link_room;
static struct page *open_pages[OPEN_MAX];
static size_t n_open;
static bool stale;
static bool is_hot; /* a page is to be filtered */
static size_t n_filtered;
static bool unsure; /* what is filtered may have been written by something else than the program's instructions */

/* ---- breakpoints ---- */

static struct worker_break *break_slot(const struct list *l, gaddr pc) {
    size_t i = (pc * 0x9e3779b97f4a7c15ull >> 32) & (l->room - 1);
    while (l->items[i].addr && l->items[i].addr != pc) i = (i + 1) & (l->room - 1);
    return &l->items[i];
}

static bool holds(const struct list *l, gaddr pc) { return l->room && break_slot(l, pc)->addr == pc; }

bool watch_has_break(gaddr pc) { return n_breaks && holds(&breaks, pc); }

void watch_code_loaded(gaddr lo, gaddr hi) {
    for (size_t i = 0; i < breaks.room; i++)
        if (breaks.items[i].addr >= lo && breaks.items[i].addr < hi) cache_invalidate_at(breaks.items[i].addr);
}

static struct list table_for(size_t n) {
    struct list l = {.room = 64};
    while (l.room < n * 2) l.room *= 2;
    l.items = arena_pages(l.room * sizeof *l.items);
    return l;
}

static void forget(struct list *l) {
    if (l->room) arena_free_pages(l->items, l->room * sizeof *l->items);
    *l = (struct list){0};
}

/* Breakpoints that are in `a` and not in `b`: the code there is translated anew. */
static void drop_code(const struct list *a, const struct list *b) {
    for (size_t i = 0; i < a->room; i++)
        if (a->items[i].addr && !holds(b, a->items[i].addr)) cache_invalidate_at(a->items[i].addr);
}

static void set_breaks(const struct worker_break *list, size_t n, bool add) {
    struct list now = table_for(n + (add ? n_breaks : 0)), before = breaks;
    size_t count = 0;
    for (size_t i = 0; add && i < before.room; i++)
        if (before.items[i].addr) *break_slot(&now, before.items[i].addr) = before.items[i], count++;
    for (size_t i = 0; i < n; i++) {
        if (list[i].kind != WORKER_BREAK_EXEC || !list[i].addr) continue;
        struct worker_break *b = break_slot(&now, list[i].addr);
        count += !b->addr;
        *b = list[i];
    }
    lock_take(&cache_lock);
    breaks = now;
    n_breaks = count;
    drop_code(&before, &now);
    drop_code(&now, &before);
    lock_drop(&cache_lock);
    forget(&before);
}

/* ---- pages ---- */

static struct page *page_slot(gaddr at) {
    size_t i = (at * 0x9e3779b97f4a7c15ull >> 32) & (page_room - 1);
    while (pages[i].at && pages[i].at != at) i = (i + 1) & (page_room - 1);
    return &pages[i];
}

static struct page *find_page(gaddr addr) {
    if (!n_pages) return NULL;
    struct page *p = page_slot(PAGE_DOWN(addr));
    return p->at ? p : NULL;
}

/* Without the lock: there is one kernel thread, and it may have been interrupted while it holds it. */
static void protect(const struct page *p, bool closed) {
    if (p->is_filtered) closed = false;
    const struct mapping *m = aspace_peek(p->at);
    if (!m || m->runtime || shared_is_closed(p->at)) return;
    int prot = aspace_host_prot((int)m->prot);
    SYS(mprotect, p->at, PAGE_SIZE, !closed ? prot : p->reads ? PROT_NONE : prot & ~PROT_WRITE);
    if (!closed) track_opened(p->at, p->at + PAGE_SIZE);
}

static void open_page(struct page *p) {
    if (p->is_open) return;
    if (!p->is_filtered) protect(p, false);
    p->is_open = true;
    if (++p->opened == HOT && !p->reads) is_hot = true;
    if (n_open < OPEN_MAX)
        open_pages[n_open++] = p;
    else
        stale = true;
}

/* Of a watchpoint, what is on the page. */
static size_t part_on(const struct page *p, const struct worker_break *w, gaddr *from) {
    *from = MAX(w->addr, p->at);
    return MIN(w->addr + w->len, p->at + PAGE_SIZE) - *from;
}

/* For a filtered page: only what is watched is looked at, because that happens at every event. False: it is not there. */
static bool compare_watched(struct page *p, bool *changed, gaddr *addr) {
    uint8_t now[PAGE_SIZE];
    *changed = false;
    for (uint32_t l = p->first; l != NONE; l = links[l].next) {
        const struct worker_break *w = &watches.items[links[l].watch];
        gaddr from;
        size_t n = part_on(p, w, &from);
        uint8_t *was = p->was + (from - p->at);
        if (!shared_peek(now, from, n)) return false;
        if (memcmp(now, was, n) == 0) continue;
        *changed = true;
        *addr = w->addr;
        memcpy(was, now, n);
    }
    return true;
}

/* A value that can be read from now on, or no more, has changed. */
static bool comes_or_goes(struct page *p, gaddr *addr) {
    const struct mapping *m = aspace_peek(p->at);
    bool is_mapped = m && !m->runtime, changed = false;
    for (uint32_t l = p->first; l != NONE && is_mapped != p->is_mapped; l = links[l].next) {
        const struct worker_break *w = &watches.items[links[l].watch];
        if (w->kind != WORKER_BREAK_WRITE) continue;
        changed = true;
        *addr = w->addr;
    }
    p->is_mapped = is_mapped;
    return changed;
}

/* Compares, takes over what is there now and closes. */
static bool close_page(struct page *p, gaddr *addr) {
    uint8_t now[PAGE_SIZE];
    bool changed = false;
    if (p->is_filtered && p->is_there && compare_watched(p, &changed, addr)) {
        p->is_open = false;
        return changed;
    }
    changed = false;
    if (!p->is_open) protect(p, false);
    bool is_there = shared_peek(now, p->at, PAGE_SIZE);
    if (is_there && p->is_there && memcmp(now, p->was, PAGE_SIZE) != 0) {
        for (uint32_t l = p->first; l != NONE && !changed; l = links[l].next) {
            const struct worker_break *w = &watches.items[links[l].watch];
            gaddr lo = MAX(w->addr, p->at), hi = MIN(w->addr + w->len, p->at + PAGE_SIZE);
            if (w->kind == WORKER_BREAK_READ || memcmp(now + (lo - p->at), p->was + (lo - p->at), hi - lo) == 0)
                continue;
            changed = true;
            *addr = w->addr;
        }
    }
    if (comes_or_goes(p, addr)) changed = true;
    if (is_there) memcpy(p->was, now, PAGE_SIZE);
    p->is_there = is_there;
    p->is_open = false;
    protect(p, true);
    return changed;
}

bool watch_is_open(void) { return n_open || stale || unsure; }

bool watch_close(gaddr *addr) {
    bool changed = false;
    gaddr at;
    if (stale) {
        for (size_t i = 0; i < page_room; i++)
            if (pages[i].at && close_page(&pages[i], &at)) changed = true, *addr = at;
    } else {
        for (size_t i = 0; i < n_open; i++)
            if (close_page(open_pages[i], &at)) changed = true, *addr = at;
        for (size_t i = 0; unsure && i < page_room; i++)
            if (pages[i].at && pages[i].is_filtered && close_page(&pages[i], &at)) changed = true, *addr = at;
    }
    n_open = 0;
    stale = unsure = false;
    return changed;
}

void watch_take_back(void) {
    gaddr addr;
    for (size_t i = 0; i < n_open; i++) open_pages[i]->opened--;
    watch_close(&addr);
}

void watch_undo(void) {
    for (size_t i = 0; i < n_open; i++) {
        open_pages[i]->opened--;
        open_pages[i]->is_open = false;
        protect(open_pages[i], true);
    }
    n_open = 0;
}

void watch_events_taken(void) { unsure = n_filtered != 0; }

/* ---- stores that are looked at ---- */

static void filter_page(struct page *p) {
    p->is_filtered = true;
    n_filtered++;
    protect(p, false);
    for (uint32_t l = p->first; l != NONE; l = links[l].next) {
        gaddr from;
        size_t n = part_on(p, &watches.items[links[l].watch], &from);
        store_filter_mark(from, n);
    }
}

void watch_filter_hot(void) {
    if (!is_hot) return;
    is_hot = false;
    store_filter_start();
    for (size_t i = 0; i < page_room; i++)
        if (pages[i].at && !pages[i].is_filtered && !pages[i].reads && pages[i].opened >= HOT) filter_page(&pages[i]);
}

/* Whether a store of n bytes to addr touches what is watched on the page; *hit: it counts whether or not it changes anything. */
static bool touches(const struct page *p, gaddr addr, uint64_t n, bool *is_hit, gaddr *hit) {
    bool any = false;
    for (uint32_t l = p->first; l != NONE; l = links[l].next) {
        const struct worker_break *w = &watches.items[links[l].watch];
        if (w->addr >= addr + n || w->addr + w->len <= addr) continue;
        any = true;
        if (w->kind != WORKER_BREAK_STORE && w->kind != WORKER_BREAK_ACCESS) continue;
        *is_hit = true;
        *hit = w->addr;
    }
    return any;
}

bool watch_store(gaddr addr, uint64_t n, bool *is_hit, gaddr *hit) {
    bool opened = false;
    *is_hit = false;
    for (gaddr at = PAGE_DOWN(addr); n && at <= PAGE_DOWN(addr + n - 1); at += PAGE_SIZE) {
        struct page *p = find_page(at);
        if (!p || !p->is_filtered || p->is_open || !touches(p, addr, n, is_hit, hit)) continue;
        open_page(p);
        opened = true;
    }
    return opened;
}

bool watch_store_anywhere(void) {
    bool opened = false;
    for (size_t i = 0; i < page_room; i++) {
        if (!pages[i].at || !pages[i].is_filtered || pages[i].is_open) continue;
        open_page(&pages[i]);
        opened = true;
    }
    return opened;
}

void watch_came(gaddr addr) {
    struct page *p = find_page(addr);
    if (p) open_page(p);
}

void watch_remap(void) { stale = n_pages != 0; }

bool watch_is_any(void) { return n_pages != 0; }

/* Whether the program itself may do it. */
static bool is_allowed(gaddr addr, bool write) {
    const struct mapping *m = aspace_peek(addr);
    return m && (m->prot & (write ? PROT_WRITE : PROT_READ | PROT_EXEC));
}

bool watch_open(gaddr addr, size_t n, bool write, bool *is_hit, gaddr *hit) {
    struct page *p = find_page(addr);
    if (!p || p->is_open || shared_is_closed(addr) || !watch_touches(addr, n, write, is_hit, hit)) return false;
    open_page(p);
    return true;
}

bool watch_touches(gaddr addr, size_t n, bool write, bool *is_hit, gaddr *hit) {
    struct page *p = find_page(addr);
    if (!p || !is_allowed(addr, write)) return false;
    *is_hit = false;
    for (uint32_t l = p->first; l != NONE; l = links[l].next) {
        const struct worker_break *w = &watches.items[links[l].watch];
        bool wanted = w->kind == WORKER_BREAK_ACCESS || w->kind == (write ? WORKER_BREAK_STORE : WORKER_BREAK_READ);
        if (!wanted || w->addr >= addr + n || w->addr + w->len <= addr) continue;
        *is_hit = true;
        *hit = w->addr;
    }
    return true;
}

/* ---- watchpoints ---- */

static void open_all(void) {
    for (size_t i = 0; i < page_room; i++)
        if (pages[i].at) {
            if (!pages[i].is_open) protect(&pages[i], false);
            arena_free_pages(pages[i].was, PAGE_SIZE);
        }
    if (page_room) arena_free_pages(pages, page_room * sizeof *pages);
    if (link_room) arena_free_pages(links, link_room * sizeof *links);
    pages = NULL;
    links = NULL;
    n_pages = page_room = n_links = link_room = n_open = n_filtered = 0;
    stale = unsure = is_hot = false;
    store_filter_clear();
}

static size_t pages_of(const struct worker_break *w) {
    return (PAGE_UP(w->addr + w->len) - PAGE_DOWN(w->addr)) / PAGE_SIZE;
}

static void watch_page(gaddr at, uint32_t watch, bool reads) {
    struct page *p = page_slot(at);
    if (!p->at) {
        *p = (struct page){.at = at, .first = NONE, .was = arena_pages(PAGE_SIZE)};
        n_pages++;
    }
    p->reads |= reads;
    links[n_links] = (struct link){watch, p->first};
    p->first = (uint32_t)n_links++;
}

static void build_pages(void) {
    size_t n = 0;
    for (size_t i = 0; i < watches.n; i++) n += pages_of(&watches.items[i]);
    if (!n) return;
    page_room = 64;
    while (page_room < n * 2) page_room *= 2;
    pages = arena_pages(page_room * sizeof *pages);
    link_room = n;
    links = arena_pages(link_room * sizeof *links);
    for (size_t i = 0; i < watches.n; i++) {
        const struct worker_break *w = &watches.items[i];
        for (size_t k = 0; k < pages_of(w); k++)
            watch_page(PAGE_DOWN(w->addr) + k * PAGE_SIZE, (uint32_t)i,
                       w->kind == WORKER_BREAK_READ || w->kind == WORKER_BREAK_ACCESS);
    }
    for (size_t i = 0; store_filter_is_on() && i < page_room; i++)
        if (pages[i].at && !pages[i].reads) filter_page(&pages[i]);
    gaddr addr;
    stale = true;
    watch_close(&addr);
}

static bool is_good(const struct worker_break *w) {
    return w->kind != WORKER_BREAK_EXEC && w->len && w->len <= 64ul << 20 && w->addr + w->len > w->addr &&
           !aspace_is_runtime(w->addr, w->len);
}

static void set_watches(const struct worker_break *list, size_t n, bool add) {
    struct list now = {.n = 0}, before = watches;
    for (size_t i = 0; i < n; i++) now.room += is_good(&list[i]);
    if (add && !now.room) return;
    if (!add && !now.room && !before.n) return;
    if (add) now.room += before.n;
    open_all();
    if (now.room) now.items = arena_pages(now.room * sizeof *now.items);
    for (size_t i = 0; add && i < before.n; i++) now.items[now.n++] = before.items[i];
    for (size_t i = 0; i < n; i++)
        if (is_good(&list[i])) now.items[now.n++] = list[i];
    forget(&before);
    watches = now;
    build_pages();
}

void watch_set(const struct worker_break *list, size_t n, bool add) {
    set_breaks(list, n, add);
    set_watches(list, n, add);
}

#include "ckpt/rt/save.h"

#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/time_types.h>

#include "ckpt/rt/saver.h"
#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/lock.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/snapshot.h"
#include "sphere/aspace.h"
#include "sphere/borrowed.h"
#include "sphere/channel.h"
#include "sphere/gate.h"

#define FAULT_NS 1300 /* what tracking costs for a page that is written: once an interval */
/* An interval is at least so many times what its checkpoint costs on all processors: 2 % by these clocks, which makes 3 % in all. What
 * they do not see is what the program's caches lose and what the kernel writes later: with 200 MB, 3 % by the clocks cost 4.4 %. */
#define COST_SHARE 50
/* What the first checkpoint, which has all of memory, costs for a page: in new memory of the area, on another processor, and when all
 * that is given back. */
#define FIRST_NS 8000

uint64_t save_interval_ms = 1000;
bool save_stretches = true;
uint64_t save_shared_pages;
const struct save_more *save_more;

static struct ckpt_area *area; /* NULL: no checkpoints */
static uint32_t area_ring;
static uint64_t area_stream;
static uint64_t began_at, due_at; /* monotonic clock */
static bool has_first;            /* a checkpoint was due, and could be afforded */
static bool given_up;             /* this checkpoint */

static uint64_t clock_ns(int clock) {
    int64_t t[2];
    SYS(clock_gettime, clock, t);
    return (uint64_t)t[0] * 1000000000ull + (uint64_t)t[1];
}

static uint64_t now_ns(void) { return clock_ns(1 /* CLOCK_MONOTONIC */); }
/* Others that want the processor are no cost of a checkpoint. */
static uint64_t own_ns(void) { return clock_ns(3 /* CLOCK_THREAD_CPUTIME_ID */); }

void save_start(int channel_fd, uint32_t ring, uint64_t stream) {
    saver_after_fork();
    track_after_fork();
    area = NULL;
    if (!save_interval_ms || !the_channel->shares || ring >= CHANNEL_RINGS) return;
    long got = SYS(mmap, LAYOUT_CKPT, sizeof *area, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                   channel_fd, AREA_OFFSET(ring));
    if (sys_failed(got)) return;
    area = (struct ckpt_area *)got;
    area_ring = ring;
    area_stream = stream;
    began_at = now_ns();
    due_at = began_at + save_interval_ms * 1000000;
    has_first = false;
}

void save_without_thread(void) {
    if (saver_end()) track_after_fork();
}

/* What somebody who has died left there is nobody's. */
static bool is_idle(void) {
    uint32_t state = __atomic_load_n(&area->state, __ATOMIC_ACQUIRE);
    return state == AREA_IDLE || (state == AREA_BUSY && area->stream != area_stream);
}

/* Pages of its own that the process has, the runtime's included; 0: not known. */
static void count_pages(void *arg) {
    uint64_t *pages = arg, numbers[3] = {0}; /* of /proc/self/statm: size, resident, shared */
    char text[128];
    long fd = SYS(openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC);
    long n = fd >= 0 ? SYS(read, fd, text, sizeof text) : 0;
    if (fd >= 0) SYS(close, fd);
    for (long i = 0, k = 0; i < n && k < 3; i++) {
        if (text[i] == ' ')
            k++;
        else
            numbers[k] = numbers[k] * 10 + (uint64_t)(text[i] - '0');
    }
    *pages = numbers[1] > numbers[2] ? numbers[1] - numbers[2] : 0;
}

/* The interval behind a checkpoint pays for it. There is none before the first one, which is the largest: it waits until what it
 * will cost is as small a part of the time so far. */
bool save_can_be_afforded(uint64_t now) {
    uint64_t pages = 0;
    if (has_first || !save_stretches) return true;
    if (saver_start()) saver_do(count_pages, &pages);
    due_at = MAX(due_at, began_at + (pages + save_shared_pages) * FIRST_NS * COST_SHARE);
    has_first = now >= due_at;
    return has_first;
}

bool save_is_due(uint64_t now) { return area && now >= due_at && is_idle(); }

/* ---- entries ---- */

static void call_taker(void) {
    __atomic_fetch_or(&the_channel->ckpt_busy[area_ring / 64], 1ull << area_ring % 64, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&the_channel->ckpt_bell, 1, __ATOMIC_SEQ_CST);
    SYS(futex, &the_channel->ckpt_bell, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

static bool is_hopeless(void) {
    return __atomic_load_n(&the_channel->stopped, __ATOMIC_ACQUIRE) || area->failed || !channel_controller_lives();
}

static void wait_on(uint32_t *word, uint32_t seen) {
    struct __kernel_timespec patience = {0, 200000000};
    SYS(futex, word, FUTEX_WAIT, seen, &patience, 0, 0);
}

/* A place for the next entry; NULL: the checkpoint is given up. */
static void *reserve(void) {
    while (area->head - __atomic_load_n(&area->tail, __ATOMIC_ACQUIRE) >= area->places) {
        uint32_t seen = __atomic_load_n(&area->space, __ATOMIC_ACQUIRE);
        __atomic_store_n(&area->waits, 1, __ATOMIC_SEQ_CST);
        call_taker();
        if (area->head - __atomic_load_n(&area->tail, __ATOMIC_SEQ_CST) < area->places) break;
        wait_on(&area->space, seen);
        given_up |= is_hopeless();
        if (given_up) return NULL;
    }
    __atomic_store_n(&area->waits, 0, __ATOMIC_RELAXED);
    return area->pages[area->head % area->places];
}

static void put(enum area_kind kind, uint16_t flags, gaddr address, size_t len) {
    area->entries[area->head % area->places] = (struct area_entry){address, (uint16_t)kind, flags, (uint32_t)len};
    __atomic_store_n(&area->head, area->head + 1, __ATOMIC_RELEASE);
}

/* In as many entries as it takes. */
static void put_bytes(enum area_kind kind, const void *from, size_t len) {
    for (const uint8_t *p = from; len && !given_up;) {
        size_t n = MIN(len, CKPT_PAGE);
        void *to = reserve();
        if (!to) return;
        memcpy(to, p, n);
        put(kind, 0, 0, n);
        p += n;
        len -= n;
    }
}

/* ---- pages ---- */

static bool can_be_read(const struct mapping *m) { return aspace_host_prot((int)m->prot) & (PROT_READ | PROT_WRITE); }

static void put_pages(const struct mapping *m, gaddr start, gaddr end) {
    bool closed = !can_be_read(m);
    if (closed) SYS(mprotect, start, end - start, PROT_READ);
    uint16_t flags = m->file.ino ? AREA_FILE_BASE : 0;
    for (; start < end && !given_up; start += PAGE_SIZE) {
        void *to = reserve();
        if (!to) break;
        given_up |= !guest_read(to, start, PAGE_SIZE);
        put(AREA_PAGE, flags, start, PAGE_SIZE);
    }
    if (closed) SYS(mprotect, m->start, m->end - m->start, aspace_host_prot((int)m->prot));
}

void *save_room(void) { return given_up ? NULL : reserve(); }

void save_put(uint64_t address, bool has_base) { put(AREA_PAGE, has_base ? AREA_FILE_BASE : 0, address, PAGE_SIZE); }

/* Where shared memory is in the store, nothing is ever dropped. */
static void put_dropped(const struct ckpt_range *list, size_t n) {
    struct ckpt_range last = n ? list[n - 1] : (struct ckpt_range){0, 0};
    if (!n) return;
    last.end = MIN(last.end, SHARED_PAGES_AT);
    put_bytes(AREA_DROPPED, list, (n - 1) * sizeof *list);
    put_bytes(AREA_DROPPED, &last, sizeof last);
}

static void put_set(const struct track_set *set) {
    put_dropped(set->dropped, set->n_dropped);
    for (size_t i = 0; i < set->n_written && !given_up; i++) {
        struct mapping m;
        for (gaddr at = set->written[i].start, end = set->written[i].end; at < end && !given_up; at = m.end) {
            if (!aspace_find(at, &m)) return; /* not possible: it was a mapping a moment ago */
            put_pages(&m, at, MIN(end, m.end));
        }
    }
}

/* ---- the whole ---- */

static void wait_until_idle(void) {
    while (!is_idle() && !is_hopeless()) wait_on(&area->state, AREA_BUSY); /* trimming takes a moment only */
}

static void stretch(uint64_t began, size_t pages) {
    uint64_t now = now_ns(), cost = own_ns() - began + pages * FAULT_NS;
    uint64_t least = (cost + area->took_us * 1000) * COST_SHARE;
    due_at = now + MAX(save_interval_ms * 1000000, save_stretches ? least : 0);
}

/* The area is ours, with nothing in it. False: it is being trimmed. */
static bool occupy(uint32_t places) {
    uint32_t seen = area->stream == area_stream ? AREA_IDLE : __atomic_load_n(&area->state, __ATOMIC_ACQUIRE);
    if (seen == AREA_TRIMMED) return false;
    area->head = area->tail = 0;
    if (area->stream != area_stream) area->failed = 0;
    area->stream = area_stream;
    area->places = places;
    area->serial++;
    return __atomic_compare_exchange_n(&area->state, &seen, AREA_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void give_up_for_good(const char *why) {
    if (trace_level) say("no more checkpoints: %s", why);
    area = NULL;
}

/* What was collected is lost: the next one has all of memory. */
static void put_off(void) {
    lock_take(&cache_lock);
    track_changed(0, UINT64_MAX & PAGE_MASK);
    lock_drop(&cache_lock);
}

bool save_checkpoint(const struct ckpt_place *place, const void *state, size_t len, bool last) {
    struct track_set set;
    uint64_t began = own_ns();
    if (!area) return false;
    if (last) wait_until_idle();
    if (!is_idle() || (area->failed && area->stream == area_stream)) return false;
    given_up = false;
    if (!occupy(last ? AREA_LAST_ENTRIES : AREA_ENTRIES)) return false;
    if (!track_start() || !track_collect(&set)) return give_up_for_good("memory cannot be tracked"), false;
    put_bytes(AREA_BEGIN, place, sizeof *place);
    call_taker();
    put_set(&set);
    if (save_more) save_more->save();
    put_bytes(AREA_STATE, state, len);
    bool whole = borrowed_is_whole(), complete = !given_up && whole;
    if (reserve()) put(complete ? AREA_END : AREA_GIVE_UP, 0, 0, 0);
    call_taker();
    if (!whole) return put_off(), false;
    if (!complete) return give_up_for_good("a page could not be saved"), false;
    if (save_more) save_more->saved();
    stretch(began, set.n_pages);
    return true;
}

#include "ckpt/taker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 200
#define WAKE_EVERY 256 /* entries */
#define IDLE_LOOKS 50  /* until an area's memory is given back: 10 s */
#define STATE_MOST (64ul << 20)
#define DROPPED_MOST (1ul << 20)

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define SET(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELEASE)

struct bytes {
    uint8_t *at;
    size_t n, room;
};

/* One area, and what has come of the checkpoint under way. */
struct seat {
    struct ckpt_area *area;
    struct ckpt_store *store;
    uint64_t stream; /* of the store */
    uint32_t serial; /* of the checkpoint */
    uint32_t places; /* of the area that it uses */
    uint64_t tail;
    bool has_place, has_begun, is_bad; /* bad: what is left of it is passed over */
    struct ckpt_place place;
    struct bytes dropped, state;
    uint64_t began_us;
    uint64_t filled; /* entries whose pages have memory */
    unsigned idle;   /* looks without a checkpoint */
};

struct taker {
    struct channel *channel;
    int fd;
    char *dir;
    pthread_t thread;
    uint32_t stops;
    char why[WHY_MAX];
    struct seat seats[CHANNEL_RINGS];
};

static bool add_bytes(struct bytes *b, const void *from, size_t n, size_t most) {
    if (n > most - b->n) return false;
    if (b->n + n > b->room) {
        size_t room = b->room ? b->room * 2 : 65536;
        while (room < b->n + n) room *= 2;
        uint8_t *bigger = realloc(b->at, room);
        if (!bigger) return false;
        b->at = bigger;
        b->room = room;
    }
    memcpy(b->at + b->n, from, n);
    b->n += n;
    return true;
}

static uint64_t cpu_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0); }

/* ---- one checkpoint ---- */

/* The first thing that goes wrong ends the checkpoints of this stream: the program goes on without. */
static void fails(struct taker *t, struct seat *s, const char *what) {
    if (!t->why[0]) snprintf(t->why, sizeof t->why, "checkpoints of stream %lu end: %s", s->stream, what);
    if (s->store) ckpt_abort(s->store);
    s->is_bad = true;
    SET(s->area->failed, 1);
}

static void start_over(struct seat *s) {
    if (s->store && s->has_begun) ckpt_abort(s->store);
    s->has_place = s->has_begun = s->is_bad = false;
    s->dropped.n = s->state.n = 0;
    s->tail = 0;
}

static bool open_store(struct taker *t, struct seat *s) {
    char why[WHY_MAX];
    uint64_t stream = GET(s->area->stream);
    if (s->store && s->stream == stream) return true;
    ckpt_close(s->store);
    s->stream = stream;
    s->store = ckpt_create(t->dir, stream, why);
    if (!s->store) fails(t, s, why);
    return s->store != NULL;
}

/* Ranges are all there when the first page comes. */
static bool begin(struct taker *t, struct seat *s) {
    if (s->has_begun) return true;
    if (!s->has_place || !open_store(t, s)) return false;
    s->has_begun = ckpt_begin(s->store, &s->place, (const struct ckpt_range *)s->dropped.at,
                              s->dropped.n / sizeof(struct ckpt_range));
    if (!s->has_begun) fails(t, s, ckpt_error(s->store));
    return s->has_begun;
}

static void take_page(struct taker *t, struct seat *s, const struct area_entry *e, const void *from) {
    uint8_t page[CKPT_PAGE]; /* it must not change between being compared and being written */
    if (!begin(t, s)) return;
    memcpy(page, from, sizeof page);
    enum ckpt_base base = e->flags & AREA_FILE_BASE ? CKPT_BASE_FILE : CKPT_BASE_ZERO;
    if (!ckpt_page(s->store, e->address, base, page)) fails(t, s, ckpt_error(s->store));
}

static void take_entry(struct taker *t, struct seat *s, struct area_entry e, const void *from) {
    if (e.len > CKPT_PAGE || s->is_bad) return;
    bool fine = true;
    switch ((enum area_kind)e.kind) {
    case AREA_BEGIN:
        memcpy(&s->place, from, sizeof s->place);
        s->has_place = true;
        break;
    case AREA_DROPPED:
        fine = !s->has_begun && add_bytes(&s->dropped, from,
                                          e.len / sizeof(struct ckpt_range) * sizeof(struct ckpt_range), DROPPED_MOST);
        break;
    case AREA_PAGE: take_page(t, s, &e, from); break;
    case AREA_STATE: fine = add_bytes(&s->state, from, e.len, STATE_MOST); break;
    case AREA_END:
        if (begin(t, s) && !ckpt_commit(s->store, s->state.at, s->state.n)) fails(t, s, ckpt_error(s->store));
        break;
    case AREA_GIVE_UP: start_over(s); break;
    default: fine = false;
    }
    if (!fine) fails(t, s, "what the program's runtime says makes no sense");
}

static void give_back_memory(struct taker *t, struct seat *s) {
    uint64_t at = AREA_OFFSET(s - t->seats) + offsetof(struct ckpt_area, pages);
    fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)(s->filled * CKPT_PAGE));
    s->filled = 0;
}

static void finish(struct seat *s) {
    uint64_t used = s->tail < s->places ? s->tail : s->places;
    if (used > s->filled) s->filled = used;
    s->idle = 0;
    start_over(s);
    s->area->took_us = cpu_us() - s->began_us;
    SET(s->area->state, AREA_IDLE);
    wake(&s->area->state);
}

/* Takes what is there. True: there was something. */
static bool take(struct taker *t, struct seat *s) {
    struct ckpt_area *a = s->area;
    if (GET(a->state) != AREA_BUSY) return false;
    uint32_t serial = GET(a->serial);
    if (serial != s->serial) {
        start_over(s);
        SET(a->tail, 0); /* what was taken of the one before may have been counted since */
        s->serial = serial;
        s->places = GET(a->places);
        if (!s->places || s->places > AREA_ENTRIES) s->places = AREA_ENTRIES;
        s->began_us = cpu_us();
    }
    uint64_t head = GET(a->head);
    if (head == s->tail || head - s->tail > s->places) return false;
    while (s->tail < head && GET(a->serial) == serial) { /* another process may have the area by now */
        struct area_entry e = a->entries[s->tail % s->places];
        take_entry(t, s, e, a->pages[s->tail % s->places]);
        SET(a->tail, ++s->tail);
        if (GET(a->waits) && (s->tail % WAKE_EVERY == 0 || s->tail == head)) {
            __atomic_add_fetch(&a->space, 1, __ATOMIC_SEQ_CST);
            wake(&a->space);
        }
        if ((e.kind == AREA_END || e.kind == AREA_GIVE_UP) && GET(a->serial) == serial) {
            finish(s);
            break;
        }
    }
    return true;
}

/* ---- all of them ---- */

static struct seat *seat_of(struct taker *t, uint32_t ring) {
    struct seat *s = &t->seats[ring];
    if (s->area) return s;
    void *p = mmap(NULL, sizeof *s->area, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, t->fd,
                   (off_t)AREA_OFFSET(ring));
    if (p == MAP_FAILED) return NULL;
    s->area = p;
    return s;
}

static bool look_around(struct taker *t) {
    bool took = false;
    for (uint32_t w = 0; w < CHANNEL_RINGS / 64; w++)
        for (uint64_t left = GET(t->channel->ckpt_busy[w]); left; left &= left - 1) {
            uint32_t ring = w * 64 + (uint32_t)__builtin_ctzll(left);
            struct seat *s = seat_of(t, ring);
            __atomic_fetch_and(&t->channel->ckpt_busy[w], ~(1ull << ring % 64), __ATOMIC_SEQ_CST);
            if (!s) continue;
            while (take(t, s)) took = true;
        }
    return took;
}

static void trim_idle(struct taker *t) {
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++) {
        struct seat *s = &t->seats[i];
        uint32_t idle = AREA_IDLE;
        if (!s->area || !s->filled || GET(s->area->state) != AREA_IDLE || ++s->idle < IDLE_LOOKS) continue;
        if (!__atomic_compare_exchange_n(&s->area->state, &idle, AREA_TRIMMED, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        give_back_memory(t, s);
        SET(s->area->state, AREA_IDLE);
    }
}

static void *taker_main(void *arg) {
    struct taker *t = arg;
    const struct timespec patience = {0, LOOK_MS * 1000000l};
    while (!GET(t->stops)) {
        uint32_t seen = GET(t->channel->ckpt_bell);
        if (look_around(t)) continue;
        trim_idle(t);
        syscall(SYS_futex, &t->channel->ckpt_bell, FUTEX_WAIT, seen, &patience, NULL, 0);
    }
    while (look_around(t)) {}
    return NULL;
}

struct taker *taker_start(struct channel *channel, int fd, const char *dir) {
    struct taker *t = channel->shares ? calloc(1, sizeof *t) : NULL;
    if (!t) return NULL;
    t->channel = channel;
    t->fd = fd;
    t->dir = strdup(dir);
    if (t->dir && pthread_create(&t->thread, NULL, taker_main, t) == 0) return t;
    free(t->dir);
    free(t);
    return NULL;
}

void taker_stop(struct taker *t, char *why) {
    why[0] = '\0';
    if (!t) return;
    SET(t->stops, 1);
    __atomic_add_fetch(&t->channel->ckpt_bell, 1, __ATOMIC_SEQ_CST);
    wake(&t->channel->ckpt_bell);
    pthread_join(t->thread, NULL);
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++) {
        struct seat *s = &t->seats[i];
        ckpt_close(s->store);
        free(s->dropped.at);
        free(s->state.at);
        if (s->area) munmap(s->area, sizeof *s->area);
    }
    snprintf(why, WHY_MAX, "%s", t->why);
    free(t->dir);
    free(t);
}

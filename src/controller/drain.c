/* Drain: see drain.h. */
#include "controller/drain.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "controller/channel_host.h"
#include "controller/complain.h"

#define FRAME_BYTES (256u << 10) /* a stream's buffer makes a frame when it has so much, */
#define FRAME_AGE 500            /* or is so many ms old */
#define SMALL_BYTES (16u << 10)  /* enough for most processes */
#define DEATH_LOOK 100           /* ms */
#define STREAMS_MAX (1u << 26)
#define PATIENCE 3000 /* ms */
#define WARM_RINGS 32 /* keep their memory when nobody uses them */

void drain_open(struct drain *d, struct channel *c, struct log_writer *w, struct file_keeper *k) {
    *d = (struct drain){.channel = c, .writer = w, .keeper = k, .claims = {1, c->next_ring}};
    times_begin(&d->times, now_ms());
}

/* ---- one stream ---- */

static void flush_stream(struct drain *d, struct intake *in) {
    if (!in->len) return;
    if (d->discard) {
        in->len = 0;
        return;
    }
    keeper_name_used(d->keeper);
    if (!in->position) d->streams++;
    writer_put(d->writer, FRAME_EVENTS, in->stream, in->position, in->buf, in->len);
    in->position += in->len;
    in->buf = NULL;
    in->len = in->cap = 0;
}

static bool make_room(struct intake *in, size_t n) {
    if (in->len + n <= in->cap) return true;
    size_t cap = in->cap ? 2 * FRAME_BYTES : SMALL_BYTES; /* those that say more than a little fill a frame */
    while (cap < in->len + n) cap *= 2;
    uint8_t *more = realloc(in->buf, cap);
    if (!more) return false;
    in->buf = more;
    in->cap = cap;
    return true;
}

/* How many of the n bytes are whole events: less than n if something else is among them. */
static size_t sane_bytes(const uint8_t *p, size_t n) {
    size_t at = 0;
    while (n - at >= sizeof(struct event)) {
        struct event e;
        memcpy(&e, p + at, sizeof e);
        if (e.size < sizeof e || e.size % 8 || e.size > EVENT_MAX || e.size > n - at) break;
        at += e.size;
    }
    return at;
}

static void set_tail(struct ring *r, struct intake *in, uint64_t tail) {
    in->tail = tail;
    __atomic_store_n(&r->tail, tail, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&r->writer_waits, __ATOMIC_SEQ_CST)) futex_ring(&r->space);
}

static void damage(struct drain *d, struct intake *in) {
    if (!in->damaged && !d->discard) complain("stream %lu is damaged: the rest of it is not recorded", in->stream);
    in->damaged = true;
}

/* Takes out what is there. True: something was. */
static bool take(struct drain *d, struct ring *r, struct intake *in) {
    uint64_t head = CHANNEL_GET(r->head), n = head - in->tail;
    if (n == 0) return false;
    if (n > RING_BYTES || n % 8) damage(d, in);
    if (in->damaged || d->discard) {
        set_tail(r, in, head);
        return true;
    }
    if (!writer_has_room(d->writer)) return false;
    if (!make_room(in, n)) {
        damage(d, in);
        return true;
    }
    if (!in->len) in->since = now_ms();
    uint64_t at = in->tail & (RING_BYTES - 1), first = RING_BYTES - at < n ? RING_BYTES - at : n;
    const uint8_t *bytes = ring_data(d->channel, (uint32_t)(in - d->rings));
    memcpy(in->buf + in->len, bytes + at, first);
    memcpy(in->buf + in->len + first, bytes, n - first);
    size_t sane = sane_bytes(in->buf + in->len, n);
    if (sane < n) damage(d, in);
    in->len += sane;
    times_note(&d->times, in->stream, in->position + in->len, now_ms(), &in->timed);
    set_tail(r, in, head);
    if (in->len >= FRAME_BYTES) flush_stream(d, in);
    return true;
}

/* ---- who uses a ring ---- */

static void look_at_pid(struct ring *r, struct intake *in) {
    uint32_t pid = __atomic_load_n(&r->pid, __ATOMIC_RELAXED);
    if (pid == in->pid) return;
    if (in->pidfd >= 0) close(in->pidfd);
    in->pid = pid;
    in->pidfd = pid && pid <= 0x7fffffff ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
}

/* A process that ended counts as dead though nobody has waited for it. */
static bool is_alive(const struct intake *in) {
    if (in->pidfd >= 0) {
        struct pollfd p = {.fd = in->pidfd, .events = POLLIN};
        return poll(&p, 1, 0) == 0;
    }
    return in->pid && in->pid <= 0x7fffffff && (kill((pid_t)in->pid, 0) == 0 || errno != ESRCH);
}

unsigned drain_count_alive(struct drain *d, uint32_t except) {
    unsigned n = 0;
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++) {
        struct intake *in = &d->rings[i];
        if (!in->active) continue;
        struct ring *r = &d->channel->rings[i];
        look_at_pid(r, in);
        if (except && in->stream && in->pid == except && CHANNEL_GET(r->head) == 0 &&
            CHANNEL_GET(r->state) == RING_OPEN) {
            n++; /* forked just before the end, and not yet itself */
            continue;
        }
        if (in->pid == except || !is_alive(in)) continue;
        bool counted = false; /* a process that is about to fork has two rings */
        for (uint32_t k = 0; k < i && !counted; k++) counted = d->rings[k].active && d->rings[k].pid == in->pid;
        n += !counted;
    }
    return n;
}

/* Whether a thread waits for a processor or for the disk; how long it has run is added to *ran, in ns. */
static bool look_at_thread(uint32_t pid, const char *tid, uint64_t *ran) {
    char path[320], state = 0;
    uint64_t ns = 0;
    snprintf(path, sizeof path, "/proc/%u/task/%s/stat", pid, tid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1) state = 0;
    if (f) fclose(f);
    snprintf(path, sizeof path, "/proc/%u/task/%s/schedstat", pid, tid);
    f = fopen(path, "re");
    if (f && fscanf(f, "%lu", &ns) == 1) *ran += ns;
    if (f) fclose(f);
    return state == 'R' || state == 'D';
}

static bool is_due(struct intake *in, uint64_t ms) {
    char tasks[32];
    uint64_t ran = 0;
    bool ready = false;
    snprintf(tasks, sizeof tasks, "/proc/%u/task", in->pid);
    DIR *dir = opendir(tasks);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.') ready |= look_at_thread(in->pid, e->d_name, &ran);
    if (dir) closedir(dir);
    if (!in->ran_before) in->ran_before = ran;
    return ready && ran < in->ran_before + ms * 1000000;
}

bool drain_is_one_due(struct drain *d, uint32_t except, uint64_t ms) {
    bool due = false;
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++) {
        struct intake *in = &d->rings[i];
        if (in->active && in->pid && in->pid != except) due |= is_due(in, ms);
    }
    return due;
}

bool drain_knows(const struct drain *d, uint32_t pid) {
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++)
        if (__atomic_load_n(&d->channel->rings[i].pid, __ATOMIC_RELAXED) == pid) return true;
    for (uint32_t i = 0; i < ENDED_KEPT; i++)
        if (d->ended[i] == pid) return true;
    return false;
}

/* ---- rings ---- */

/* False: a stream of this number was there before, or there can be none. */
static bool is_new_stream(struct drain *d, uint64_t stream) {
    if (stream >= STREAMS_MAX) return false;
    if (stream / 8 >= d->seen_size) {
        size_t size = (stream / 8 + 1) * 2;
        uint8_t *more = realloc(d->seen, size);
        if (!more) return false;
        memset(more + d->seen_size, 0, size - d->seen_size);
        d->seen = more;
        d->seen_size = size;
    }
    uint8_t bit = (uint8_t)(1u << stream % 8), *at = &d->seen[stream / 8];
    if (*at & bit) return false;
    *at |= bit;
    return true;
}

static void begin(struct drain *d, uint32_t i, struct ring *r) {
    struct intake *in = &d->rings[i];
    *in = (struct intake){.active = true, .stream = r->stream, .pidfd = -1};
    if (!is_new_stream(d, in->stream)) damage(d, in);
    d->n_active++;
}

static void end(struct drain *d, uint32_t i, struct ring *r) {
    struct intake *in = &d->rings[i];
    flush_stream(d, in);
    free(in->buf);
    if (in->pidfd >= 0) close(in->pidfd);
    d->ended[d->n_ended++ % ENDED_KEPT] = __atomic_load_n(&r->pid, __ATOMIC_RELAXED);
    *in = (struct intake){.pidfd = -1};
    d->n_active--;
    if (i >= WARM_RINGS) madvise(ring_data(d->channel, i), RING_BYTES, MADV_REMOVE);
    ring_reset(r, 0, RING_FREE);
    claims_begin_at(&d->claims, d->channel, i); /* warm memory first */
    if (__atomic_exchange_n(&d->channel->ring_wanted, 0, __ATOMIC_SEQ_CST)) futex_ring(&d->channel->freed);
}

/* Whether the process of an open ring is gone. As long as nothing was written, the pid may be that of a parent, which forked and
 * ended, while the child is about to put its own there: that needs patience. */
static bool is_orphan(struct drain *d, struct ring *r, struct intake *in, uint64_t now) {
    bool written = CHANNEL_GET(r->head) > 0; /* before the pid is looked at */
    look_at_pid(r, in);
    if (in->pid ? is_alive(in) : drain_count_alive(d, 0) > 0) {
        in->nobody_since = 0;
        return false;
    }
    if (written) return true;
    if (!in->nobody_since) in->nobody_since = now;
    return now - in->nobody_since > PATIENCE;
}

static bool look_at(struct drain *d, uint32_t i, bool deaths, uint64_t now) {
    struct ring *r = &d->channel->rings[i];
    struct intake *in = &d->rings[i];
    uint32_t state = CHANNEL_GET(r->state);
    if (!in->active) {
        if (state != RING_OPEN && state != RING_CLOSED) return false;
        begin(d, i, r);
    }
    /* what was written before its state or its death was seen is taken after */
    bool over = state != RING_OPEN || (deaths && is_orphan(d, r, in, now));
    bool took = take(d, r, in);
    if (over && (in->damaged || CHANNEL_GET(r->head) == in->tail)) end(d, i, r);
    return took;
}

bool drain_look(struct drain *d) {
    uint64_t now = now_ms();
    bool deaths = now - d->last_deaths >= DEATH_LOOK, took = false;
    if (deaths) d->last_deaths = now;
    uint32_t n = claims_reach(&d->claims, d->channel);
    for (uint32_t i = 0; i < n; i++) took |= look_at(d, i, deaths, now);
    for (uint32_t i = 0; i < n; i++)
        if (d->rings[i].len && now - d->rings[i].since >= FRAME_AGE && writer_has_room(d->writer))
            flush_stream(d, &d->rings[i]);
    return took;
}

void drain_flush(struct drain *d) {
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++) flush_stream(d, &d->rings[i]);
}

void drain_stop(struct drain *d) {
    CHANNEL_SET(d->channel->stopped, 1);
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++)
        if (d->rings[i].active) futex_ring(&d->channel->rings[i].space);
}

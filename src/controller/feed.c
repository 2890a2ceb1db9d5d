/* Feed: see feed.h. */
#include "controller/feed.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "controller/channel_host.h"
#include "controller/complain.h"

#define DEATH_LOOK 100 /* ms */

void feed_open(struct feed *f, struct channel *c, const struct recording *r) {
    *f = (struct feed){.channel = c, .recording = r};
}

/* ---- one ring ---- */

/* How many bytes of whole events at p, of which there are n, fit into `space`. 0 with *bad: p is no event. */
static size_t whole_events(const uint8_t *p, size_t n, size_t space, bool *bad) {
    size_t at = 0;
    while (n - at >= sizeof(struct event)) {
        struct event e;
        memcpy(&e, p + at, sizeof e);
        if (e.size < sizeof e || e.size % 8 || e.size > EVENT_MAX || e.size > n - at) break;
        if (at + e.size > space) return at;
        at += e.size;
    }
    *bad = at < n;
    return at;
}

static void damage(struct feed *f, struct feeding *g, const char *why) {
    if (!f->damaged) complain("stream %lu of the recording is damaged: %s", g->reader.stream->number, why);
    f->damaged = true;
    g->all = true;
}

/* Makes sure that there is something at hand. False: there is nothing more. */
static bool refill(struct feed *f, struct feeding *g) {
    if (g->at < g->reader.raw_len) return true;
    switch (stream_reader_next(&g->reader)) {
    case READ_GOT:
        g->at = g->head > g->reader.position ? g->head - g->reader.position : 0; /* the first one may begin before */
        return g->at < g->reader.raw_len;
    case READ_DAMAGED: damage(f, g, g->reader.why); return false;
    case READ_NONE: break;
    }
    g->all = true;
    return false;
}

/* Fills the ring as far as possible. True: something went in. */
static bool fill(struct feed *f, struct ring *r, struct feeding *g) {
    uint64_t tail = CHANNEL_GET(r->tail), start = g->head;
    if (tail < g->tail || tail > g->head) tail = g->tail; /* nonsense */
    g->tail = tail;
    while (!g->all && refill(f, g)) {
        bool bad = false;
        size_t n = whole_events(g->reader.raw + g->at, g->reader.raw_len - g->at, RING_BYTES - (g->head - tail), &bad);
        uint64_t at = g->head & (RING_BYTES - 1), first = RING_BYTES - at < n ? RING_BYTES - at : n;
        uint8_t *bytes = ring_data(f->channel, (uint32_t)(g - f->rings));
        memcpy(bytes + at, g->reader.raw + g->at, first);
        memcpy(bytes, g->reader.raw + g->at + first, n - first);
        g->head += n;
        g->at += n;
        if (bad)
            damage(f, g, "an event has an impossible size");
        else if (n == 0)
            break;
    }
    if (g->head == start) return false;
    __atomic_store_n(&r->head, g->head, __ATOMIC_SEQ_CST);
    return true;
}

static void wake_reader(struct ring *r) {
    if (__atomic_load_n(&r->reader_waits, __ATOMIC_SEQ_CST)) futex_ring(&r->filled);
}

static bool change_state(struct ring *r, uint32_t from, uint32_t to) {
    bool done = __atomic_compare_exchange_n(&r->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (done) futex_wake_all(&r->state);
    return done;
}

static void begin(struct feed *f, uint32_t i, struct ring *r) {
    struct feeding *g = &f->rings[i];
    const struct stream_ref *stream = recording_stream(f->recording, r->stream);
    uint64_t from = CHANNEL_GET(r->tail);
    *g = (struct feeding){.active = true, .pid = r->pid, .head = from, .tail = from};
    f->n_active++;
    if (!stream || !stream_reader_open(&g->reader, f->recording, stream, from)) {
        g->refused = true;
        f->refused++;
        change_state(r, RING_WANTED, RING_REFUSED);
        return;
    }
    fill(f, r, g);
    change_state(r, RING_WANTED, RING_OPEN);
}

static void end(struct feed *f, uint32_t i, struct ring *r, bool done) {
    struct feeding *g = &f->rings[i];
    if (!g->refused) stream_reader_close(&g->reader);
    f->taken += g->tail;
    if (done) f->instructions += r->instructions;
    if (f->ended) f->ended(f->arg, g->pid, done ? r->ended : RING_NOT_ENDED, done ? r->status : 0);
    *g = (struct feeding){.active = false};
    f->n_active--;
    ring_reset(r, 0, RING_FREE);
    claims_begin_at(&f->claims, f->channel, i); /* warm memory first */
}

/* ---- all rings ---- */

static bool is_gone(const struct feeding *g) {
    return !g->pid || g->pid > 0x7fffffff || (kill((pid_t)g->pid, 0) < 0 && errno == ESRCH);
}

static bool look_at(struct feed *f, uint32_t i, bool deaths) {
    struct ring *r = &f->channel->rings[i];
    struct feeding *g = &f->rings[i];
    uint32_t state = CHANNEL_GET(r->state);
    if (state == RING_WANTED && !g->active) {
        begin(f, i, r);
        return true;
    }
    if (!g->active) return false;
    bool gone = deaths && is_gone(g); /* before its last word is looked at */
    state = CHANNEL_GET(r->state);
    if (state == RING_DONE || gone) {
        end(f, i, r, state == RING_DONE);
        return true;
    }
    if (g->refused) return false;
    bool went = fill(f, r, g);
    if (g->all && state == RING_OPEN && change_state(r, RING_OPEN, RING_CLOSED)) went = true;
    if (went) wake_reader(r);
    return went;
}

bool feed_look(struct feed *f) {
    uint64_t now = now_ms();
    bool deaths = now - f->last_deaths >= DEATH_LOOK, busy = false;
    if (deaths) f->last_deaths = now;
    uint32_t n = claims_reach(&f->claims, f->channel);
    for (uint32_t i = 0; i < n; i++) busy |= look_at(f, i, deaths);
    return busy;
}

uint64_t feed_taken(const struct feed *f) {
    uint64_t sum = f->taken;
    for (uint32_t i = 0; i < f->claims.high; i++)
        if (f->rings[i].active) sum += f->rings[i].tail;
    return sum;
}

void feed_close(struct feed *f) {
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++)
        if (f->rings[i].active && !f->rings[i].refused) stream_reader_close(&f->rings[i].reader);
}

/* A process that was forked late begins with what its parent was then. Where that has checkpoints, one of them is where to begin. */
#include <string.h>

#include "log/snapshot.h"
#include "replay/session.h"
#include "replay/stored.h"

/* Where the stream goes on behind checkpoint k. */
static uint64_t position_of(const struct stored *s, size_t k) {
    size_t len;
    const struct snapshot *state = k < stored_count(s) ? ckpt_state(s->store, k, &len) : NULL;
    return state && len >= sizeof *state && state->magic == SNAPSHOT_MAGIC ? state->position : UINT64_MAX;
}

/* Whether the stream has made the child in [from, to). */
static bool forks(const struct recording *r, const struct stream_ref *stream, uint64_t child, uint64_t from,
                  uint64_t to) {
    struct event_reader reader;
    const struct event *e;
    bool found = false;
    if (!event_reader_open_at(&reader, r, stream, from)) return false;
    while (!found && event_reader_next(&reader, &e) == READ_GOT && reader.position < to)
        found = e->kind == EV_FORK && EVENT_PAYLOAD(e, ev_child)->stream == child;
    event_reader_close(&reader);
    return found;
}

static uint64_t time_of(const struct stored *s, size_t k) {
    struct ckpt_info info;
    return ckpt_info(s->store, k, &info) ? info.place.time_ns : UINT64_MAX;
}

/* The last checkpoint that can have been taken before the child was made: it is not younger than the child's first. */
static size_t last_before(const struct stored *s, const struct recording *r, uint64_t child) {
    struct stored own;
    stored_open(&own, r, child);
    uint64_t limit = stored_count(&own) ? time_of(&own, 0) : UINT64_MAX;
    stored_close(&own);
    size_t n = stored_count(s);
    while (n && time_of(s, n - 1) > limit) n--;
    return n;
}

/* Memory that it has inherited itself is known by who stands at its begin, and nobody does. */
static bool stands_alone(const struct stored *s, size_t k) {
    size_t n;
    const struct snapshot_object *list = stored_objects(s, k, &n);
    for (size_t i = 0; i < n; i++)
        if (list[i].flags & SNAPSHOT_INHERITED) return false;
    return position_of(s, k) != UINT64_MAX;
}

static int image_before(const struct recording *r, uint64_t parent, uint64_t child) {
    struct stored s;
    const struct stream_ref *stream = recording_stream(r, parent);
    int image = -1;
    stored_open(&s, r, parent);
    for (size_t n = last_before(&s, r, child); stream && n; n--) {
        uint64_t from = position_of(&s, n - 1);
        if (from > s.stream_len || !forks(r, stream, child, from, position_of(&s, n))) continue;
        if (stands_alone(&s, n - 1)) image = stored_image(&s, n - 1);
        break;
    }
    stored_close(&s);
    return image;
}

int ancestor_image(const struct recording *r, const uint64_t *chain, uint32_t n, uint64_t *stream) {
    int image = -1;
    for (uint32_t i = n; image < 0 && i > 1; i--) {
        *stream = chain[i - 2];
        image = image_before(r, chain[i - 2], chain[i - 1]);
    }
    return image;
}

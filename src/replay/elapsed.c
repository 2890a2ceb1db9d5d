#include "replay/elapsed.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Around a place: the event before it and the one behind it. */
struct around {
    uint64_t position;          /* bytes of the stream before the event behind the place */
    bool has_next;              /* there is one, and... */
    uint64_t from_ticks, ticks; /* ... these are the ticks of its R-thread at its event before that, and at it */
};

static bool look_around(const struct recording *r, uint64_t stream, uint64_t event, struct around *a) {
    const struct stream_ref *s = recording_stream(r, stream);
    struct event_reader reader;
    const struct event *e;
    enum { THREADS = 1024 };
    uint64_t *ticks = calloc(THREADS, sizeof *ticks);
    bool open = s && ticks && event_reader_open(&reader, r, s);
    *a = (struct around){0};
    while (open && event_reader_next(&reader, &e) == READ_GOT) {
        a->position = reader.position;
        if (reader.number == event) {
            a->has_next = true;
            a->ticks = e->ticks;
            a->from_ticks = ticks[e->thread % THREADS];
            break;
        }
        ticks[e->thread % THREADS] = e->ticks;
        a->position += e->size;
    }
    if (open) event_reader_close(&reader);
    free(ticks);
    return open;
}

/* When the first `position` bytes of the stream, and the event behind them, had come: ms. False: there is no sample of it. */
static bool look_up(struct json times, uint64_t stream, uint64_t position, double *before, double *behind) {
    uint64_t v[3], reached = 0, passed = 0, last = 0;
    bool any = false, has_reached = false, has_passed = false;
    for (struct json j = json_first(times); json_is(j); j = json_next(j)) {
        for (int i = 0; i < 3; i++) {
            if (i) j = json_next(j);
            if (!json_is(j) || !json_u64(j, &v[i])) return false;
        }
        if (v[0] != stream) continue;
        any = true;
        last = v[2];
        if (!has_reached && v[1] >= position) has_reached = true, reached = v[2];
        if (!has_passed && v[1] > position) has_passed = true, passed = v[2];
    }
    *before = (double)(has_reached ? reached : last);
    *behind = (double)(has_passed ? passed : has_reached ? reached : last);
    return any;
}

bool elapsed_at(const struct recording *r, uint64_t stream, struct position at, double *seconds) {
    struct json times;
    struct around a;
    double before, behind, part = 0;
    if (!json_is(r->end) || !json_member(r->end, "times", &times)) return false;
    if (!look_around(r, stream, at.event, &a) || !look_up(times, stream, a.position, &before, &behind)) return false;
    if (a.has_next && a.ticks > a.from_ticks && at.ticks > a.from_ticks)
        part = (double)(at.ticks - a.from_ticks) / (double)(a.ticks - a.from_ticks);
    *seconds = (before + (behind - before) * (part < 1 ? part : 1)) / 1000;
    return true;
}

void elapsed_text(const struct recording *r, uint64_t stream, struct position at, char *out, size_t cap) {
    double seconds;
    uint64_t began = 0;
    char when[64] = "";
    if (!elapsed_at(r, stream, at, &seconds)) {
        snprintf(out, cap, "The recording does not say.\n");
        return;
    }
    if (json_member_u64(r->header, "began_ns", &began)) {
        time_t t = (time_t)((double)began / 1e9 + seconds);
        struct tm tm;
        if (localtime_r(&t, &tm)) strftime(when, sizeof when, ", at %F %T", &tm);
    }
    snprintf(out, cap, "%.2f s after the recording began%s\n", seconds, when);
}

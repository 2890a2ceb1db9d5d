/* What the events of a recording say in sum, see summary.h. */
#include "log/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* Interleaving: PREEMPT, TURN, ACQUIRE and RELEASE whole; of other events the fields that say which R-thread and when, if
 * there are several. What it takes in the file is found by compressing these bytes of each frame alone. */
struct projection {
    uint8_t *bytes, *packed;
    size_t len;
    size_t frame; /* place in the stream of the frame that is being looked at */
    ZSTD_CCtx *context;
};

struct walk {
    struct stream_facts *facts;
    const struct recording *recording;
    const struct stream_ref *stream;
    uint64_t *ticks; /* by R-thread; 0: not seen. Stored plus one */
    size_t threads_room;
    uint64_t arg_start;
    uint8_t *got; /* bytes of words that were found */
    struct projection order;
};

static void damage(struct walk *w, uint64_t event, const char *what) {
    if (!w->facts->damage[0])
        snprintf(w->facts->damage, sizeof w->facts->damage, "stream %lu, event %lu: %s", w->facts->number, event, what);
}

/* ---- command line ---- */

static void expect_words(struct walk *w, const struct ev_start *s) {
    if (s->arg_end <= s->arg_start || s->arg_end - s->arg_start > SUMMARY_WORDS) return;
    w->facts->words_len = s->arg_end - s->arg_start;
    w->facts->words = calloc(1, w->facts->words_len + 1);
    w->got = calloc(1, w->facts->words_len);
    w->arg_start = s->arg_start;
}

static void take_words(struct walk *w, const struct ev_memory *m, const uint8_t *bytes) {
    struct stream_facts *f = w->facts;
    if (!f->words || !w->got || m->len > UINT64_MAX - m->addr) return;
    uint64_t from = m->addr > w->arg_start ? m->addr : w->arg_start;
    uint64_t to = m->addr + m->len < w->arg_start + f->words_len ? m->addr + m->len : w->arg_start + f->words_len;
    if (from >= to) return;
    memcpy(f->words + (from - w->arg_start), bytes + (from - m->addr), to - from);
    memset(w->got + (from - w->arg_start), 1, to - from);
}

/* Without all of its bytes a command line is none. */
static void finish_words(struct walk *w) {
    struct stream_facts *f = w->facts;
    if (f->words && (!w->got || memchr(w->got, 0, f->words_len))) {
        free(f->words);
        f->words = NULL;
        f->words_len = 0;
    }
    free(w->got);
    w->got = NULL;
}

/* ---- events ---- */

static bool see_thread(struct walk *w, const struct event *e) {
    if (e->thread >= SUMMARY_THREADS) return false;
    if (e->thread >= w->threads_room) {
        size_t room = w->threads_room ? w->threads_room : 16;
        while (room <= e->thread) room *= 2;
        uint64_t *bigger = realloc(w->ticks, room * sizeof *bigger);
        if (!bigger) return false;
        memset(bigger + w->threads_room, 0, (room - w->threads_room) * sizeof *bigger);
        w->ticks = bigger;
        w->threads_room = room;
    }
    uint64_t seen = e->ticks == UINT64_MAX ? UINT64_MAX : e->ticks + 1;
    if (w->ticks[e->thread] == 0) w->facts->threads++;
    if (seen > w->ticks[e->thread]) w->ticks[e->thread] = seen;
    return true;
}

static void begin(struct walk *w, const struct event *e) {
    struct stream_facts *f = w->facts;
    if (e->kind == EV_START) {
        const struct ev_start *s = EVENT_PAYLOAD(e, ev_start);
        f->pid = s->pid;
        f->ppid = s->ppid;
        f->parent = s->parent;
        snprintf(f->comm, sizeof f->comm, "%.*s", (int)sizeof s->comm, s->comm);
        snprintf(f->exe, sizeof f->exe, "%.*s", (int)sizeof s->exe, s->exe);
        expect_words(w, s);
    } else if (e->kind == EV_FORKED) {
        const struct ev_forked *s = EVENT_PAYLOAD(e, ev_forked);
        f->forked = true;
        f->pid = s->pid;
        f->ppid = s->ppid;
        f->parent = s->parent;
    } else {
        damage(w, 0, "the stream starts with neither START nor FORKED");
    }
}

static void see_event(struct walk *w, const struct event *e, uint64_t number) {
    struct stream_facts *f = w->facts;
    if (number == 0)
        begin(w, e);
    else if (e->kind == EV_START || e->kind == EV_FORKED)
        damage(w, number, "a second beginning");
    if (f->end == STREAM_EXITED) damage(w, number, "an event behind the end");
    if (f->end == STREAM_EXEC) f->end = STREAM_CUT; /* it was a child of vfork() that called exec */
    f->events++;
    f->kinds[e->kind & 31]++;
    if (!see_thread(w, e)) damage(w, number, "the number of an R-thread is out of range");
    switch (e->kind) {
    case EV_MEMORY: take_words(w, EVENT_PAYLOAD(e, ev_memory), event_bytes(e)); break;
    case EV_EXEC:
        f->end = STREAM_EXEC;
        f->next = EVENT_PAYLOAD(e, ev_child)->stream;
        break;
    case EV_END:
        f->end = STREAM_EXITED;
        f->status = EVENT_PAYLOAD(e, ev_exit)->status;
        break;
    }
}

/* ---- sizes ---- */

static bool is_order_event(unsigned kind) {
    return kind == EV_PREEMPT || kind == EV_TURN || kind == EV_ACQUIRE || kind == EV_RELEASE;
}

static void add_order(struct projection *p, const struct event *e, bool several) {
    if (is_order_event(e->kind)) {
        size_t n = sizeof *e + event_payload_size(e->kind); /* contents of a page are inputs */
        memcpy(p->bytes + p->len, e, n);
        p->len += n;
    } else if (several) {
        memcpy(p->bytes + p->len, &e->thread, sizeof e->thread);
        memcpy(p->bytes + p->len + sizeof e->thread, &e->ticks, sizeof e->ticks);
        p->len += sizeof e->thread + sizeof e->ticks;
    }
}

/* The frame is over: its interleaving in the file is never more than the frame itself. */
static void close_frame(struct walk *w) {
    struct projection *p = &w->order;
    const struct frame_head *h = &w->recording->frames[w->stream->frames[p->frame]].head;
    size_t stored = p->len;
    if (p->len && h->compression == FRAME_ZSTD && p->context) {
        size_t n = ZSTD_compressCCtx(p->context, p->packed, w->stream->largest, p->bytes, p->len, 3);
        if (!ZSTD_isError(n) && n < stored) stored = n;
    }
    w->facts->interleaving_raw += p->len;
    w->facts->interleaving_stored += stored < h->len ? stored : h->len;
    p->len = 0;
}

/* Whether R-thread and ticks of events tell anything: a second walk, when the number of R-threads is known. */
static void measure(struct walk *w) {
    struct event_reader reader;
    const struct event *e;
    struct projection *p = &w->order;
    bool several = w->facts->threads > 1;
    if (!several && !w->facts->kinds[EV_PREEMPT] && !w->facts->kinds[EV_TURN] && !w->facts->kinds[EV_ACQUIRE] &&
        !w->facts->kinds[EV_RELEASE])
        return;
    p->bytes = malloc(w->stream->largest);
    p->packed = malloc(w->stream->largest);
    p->context = ZSTD_createCCtx();
    if (p->bytes && p->packed && event_reader_open(&reader, w->recording, w->stream)) {
        while (event_reader_next(&reader, &e) == READ_GOT) {
            size_t frame = reader.stream.next - 1;
            if (frame != p->frame) {
                close_frame(w);
                p->frame = frame;
            }
            add_order(p, e, several);
        }
        close_frame(w);
        event_reader_close(&reader);
    }
    free(p->bytes);
    free(p->packed);
    ZSTD_freeCCtx(p->context);
}

static bool walk_stream(const struct recording *r, const struct stream_ref *s, struct stream_facts *f) {
    struct event_reader reader;
    struct walk w = {.facts = f, .recording = r, .stream = s};
    const struct event *e;
    enum read_result got;
    f->number = s->number;
    f->parent = f->next = NO_STREAM;
    f->raw_len = s->raw_len;
    f->stored_len = s->stored_len;
    if (!event_reader_open(&reader, r, s)) return false;
    while ((got = event_reader_next(&reader, &e)) == READ_GOT) see_event(&w, e, reader.number);
    if (got == READ_DAMAGED && !f->damage[0]) snprintf(f->damage, sizeof f->damage, "%s", reader.why);
    event_reader_close(&reader);
    finish_words(&w);
    for (size_t i = 0; i < w.threads_room; i++)
        if (w.ticks[i]) f->ticks += w.ticks[i] - 1;
    free(w.ticks);
    measure(&w);
    return true;
}

/* ---- the whole ---- */

static int by_name(const void *a, const void *b) {
    const struct frame_object *x = a, *y = b;
    return memcmp(&x->name, &y->name, sizeof x->name);
}

static void count_objects(struct summary *s, const struct recording *r) {
    struct frame_object *all = malloc((r->n_objects + 1) * sizeof *all);
    if (!all) return;
    for (size_t i = 0; i < r->n_objects; i++) all[i] = r->objects[i].object;
    qsort(all, r->n_objects, sizeof *all, by_name);
    for (size_t i = 0; i < r->n_objects; i++) {
        if (i && by_name(&all[i - 1], &all[i]) == 0) continue;
        s->objects++;
        s->objects_size += all[i].size;
    }
    free(all);
}

static void add_up(struct summary *s) {
    for (size_t i = 0; i < s->n_streams; i++) {
        const struct stream_facts *f = &s->streams[i];
        s->events += f->events;
        s->threads += f->threads;
        s->ticks += f->ticks;
        s->raw_len += f->raw_len;
        s->stored_len += f->stored_len;
        s->interleaving_raw += f->interleaving_raw;
        s->interleaving_stored += f->interleaving_stored;
        for (size_t k = 0; k < sizeof s->kinds / sizeof *s->kinds; k++) s->kinds[k] += f->kinds[k];
        if (!summary_before(s, f)) s->processes++;
    }
}

struct summary *summary_of(const struct recording *r) {
    struct summary *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->streams = calloc(r->n_streams + 1, sizeof *s->streams);
    for (size_t i = 0; s->streams && i < r->n_streams; i++) {
        s->n_streams = i + 1;
        if (!walk_stream(r, &r->streams[i], &s->streams[i])) {
            summary_free(s);
            return NULL;
        }
    }
    if (s->streams) add_up(s);
    count_objects(s, r);
    return s;
}

void summary_free(struct summary *s) {
    if (!s) return;
    for (size_t i = 0; i < s->n_streams; i++) free(s->streams[i].words);
    free(s->streams);
    free(s);
}

const struct stream_facts *summary_stream(const struct summary *s, uint64_t number) {
    size_t low = 0, high = s->n_streams;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->streams[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n_streams && s->streams[low].number == number ? &s->streams[low] : NULL;
}

const struct stream_facts *summary_before(const struct summary *s, const struct stream_facts *f) {
    if (f->forked || f->parent >= f->number) return NULL;
    const struct stream_facts *p = summary_stream(s, f->parent);
    return p && p->pid == f->pid ? p : NULL;
}

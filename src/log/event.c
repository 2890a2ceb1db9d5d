/* Events out of streams, each of them checked: see recording.h. */
#include <stdio.h>
#include <string.h>

#include "log/recording.h"

/* The struct behind the head, by kind; PREEMPT, TURN and STOP have none. */
static const uint32_t payload_sizes[] = {
    [EV_START] = sizeof(struct ev_start),
    [EV_FORKED] = sizeof(struct ev_forked),
    [EV_MAP] = sizeof(struct ev_map),
    [EV_MEMORY] = sizeof(struct ev_memory),
    [EV_SYSCALL] = sizeof(struct ev_syscall),
    [EV_OUT] = sizeof(struct ev_memory),
    [EV_FORK] = sizeof(struct ev_child),
    [EV_CLONE] = sizeof(struct ev_child),
    [EV_EXEC] = sizeof(struct ev_child),
    [EV_EXIT] = sizeof(struct ev_exit),
    [EV_END] = sizeof(struct ev_exit),
    [EV_SIGNAL] = sizeof(struct ev_signal),
    [EV_FAULT] = sizeof(struct ev_signal),
    [EV_PREEMPT] = 0,
    [EV_TURN] = 0,
    [EV_INSN] = sizeof(struct ev_insn),
    [EV_HASH] = sizeof(struct ev_hash),
    [EV_ACQUIRE] = sizeof(struct ev_page),
    [EV_RELEASE] = sizeof(struct ev_page),
    [EV_MAPPED] = sizeof(struct ev_mapped),
    [EV_CHANGE] = sizeof(struct ev_change),
    [EV_CHECKPOINT] = sizeof(struct ev_checkpoint),
    [EV_EXTENDED] = sizeof(struct ev_extended),
    [EV_STOP] = 0,
    [EV_POKE] = sizeof(struct ev_memory),
    [EV_REGS] = sizeof(struct ev_regs),
};

const char *event_kind_name(unsigned kind) {
    switch (kind) {
#define EVENT_NAME(name, number) \
    case number: return #name;
        EVENT_KINDS(EVENT_NAME)
#undef EVENT_NAME
    default: return NULL;
    }
}

size_t event_payload_size(unsigned kind) {
    return kind < sizeof payload_sizes / sizeof *payload_sizes ? payload_sizes[kind] : 0;
}

const char *event_check(const void *bytes, size_t n) {
    const struct event *e = bytes;
    if (n < sizeof *e) return "no room for an event's head";
    if (e->size < sizeof *e || e->size % 8) return "an event whose size is none";
    if (e->size > EVENT_MAX) return "an event that is too large";
    if (e->size > n) return "an event that goes on behind its frame";
    if (!event_kind_name(e->kind)) return "an event of unknown kind";
    size_t payload = e->size - sizeof *e, needed = event_payload_size(e->kind);
    if (payload < needed) return "an event too small for its kind";
    if ((e->kind == EV_MEMORY || e->kind == EV_OUT || e->kind == EV_POKE) &&
        EVENT_PAYLOAD(e, ev_memory)->len > payload - needed)
        return "an event with more bytes than it has room for";
    if (e->kind == EV_REGS && EVENT_PAYLOAD(e, ev_regs)->extended > payload - needed)
        return "an event with more bytes than it has room for";
    if (e->kind == EV_CHANGE && EVENT_PAYLOAD(e, ev_change)->len > payload - needed)
        return "an event with more bytes than it has room for";
    if (e->kind == EV_EXTENDED && EVENT_PAYLOAD(e, ev_extended)->len > payload - needed)
        return "an event with more bytes than it has room for";
    if (event_may_have_contents(e) && payload > needed && !event_contents(e))
        return "an event with contents of no page";
    return NULL;
}

bool event_reader_open(struct event_reader *r, const struct recording *recording, const struct stream_ref *stream) {
    *r = (struct event_reader){.at = 0};
    return stream_reader_open(&r->stream, recording, stream, 0);
}

bool event_reader_open_at(struct event_reader *r, const struct recording *recording, const struct stream_ref *stream,
                          uint64_t position) {
    *r = (struct event_reader){.at = 0};
    if (!stream_reader_open(&r->stream, recording, stream, position)) return false;
    bool is_there = stream_reader_next(&r->stream) == READ_GOT && position >= r->stream.position &&
                    position - r->stream.position <= r->stream.raw_len;
    if (is_there)
        r->at = position - r->stream.position;
    else
        stream_reader_close(&r->stream);
    return is_there;
}

enum read_result event_reader_next(struct event_reader *r, const struct event **event) {
    if (r->at >= r->stream.raw_len) {
        enum read_result got = stream_reader_next(&r->stream);
        if (got == READ_DAMAGED) snprintf(r->why, sizeof r->why, "%s", r->stream.why);
        if (got != READ_GOT) return got;
        r->at = 0;
    }
    const struct event *e = (const struct event *)(r->stream.raw + r->at);
    r->position = r->stream.position + r->at;
    const char *wrong = event_check(e, r->stream.raw_len - r->at);
    if (wrong) {
        snprintf(r->why, sizeof r->why, "stream %lu, event %lu at byte %lu of the stream: %s", r->stream.stream->number,
                 r->given, r->position, wrong);
        r->at = r->stream.raw_len; /* nothing more */
        r->stream.next = r->stream.stream->n_frames;
        return READ_DAMAGED;
    }
    r->number = r->given++;
    r->at += e->size;
    *event = e;
    return READ_GOT;
}

void event_reader_close(struct event_reader *r) { stream_reader_close(&r->stream); }

/* Reading a recording. Nothing in it is trusted: whatever is wrong becomes a text for the user, never a crash. Normative
 * text: docs/formats.md; where recordings are: place.h.
 *
 * Opening looks at the heads of all frames; payloads are checked when they are read, or all at once by recording_verify().
 * The first frame that is wrong ends the recording: what comes before it counts, `cut` says where and `fault` why. A
 * recording whose last frame is not END was cut off, too: by the death of the controller, or it is still under way. */
#ifndef REPRISE_LOG_RECORDING_H
#define REPRISE_LOG_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/events.h"
#include "log/frame.h"
#include "log/json.h"
#include "log/place.h" /* WHY_MAX */

struct frame_ref {
    uint64_t offset; /* of the head, in the file */
    struct frame_head head;
};

/* One stream: its frames in order, each going on where the one before ends. */
struct stream_ref {
    uint64_t number;
    size_t *frames; /* indices into recording.frames */
    size_t n_frames;
    uint64_t raw_len, stored_len; /* stored_len counts the heads, too */
    uint32_t largest;             /* raw_len of a frame */
};

struct object_ref {
    struct frame_object object;
    char *path; /* terminated; as it was called when it was recorded */
};

struct recording {
    char *dir; /* NULL: opened from memory */
    int fd;
    const uint8_t *bytes;   /* instead of fd */
    uint64_t size;          /* of the file */
    uint64_t cut;           /* bytes that count; == size: every frame is right */
    enum frame_fault fault; /* of the frame at `cut` */
    bool under_way;         /* a controller still writes it */

    struct frame_ref *frames;
    size_t n_frames;
    struct stream_ref *streams; /* by number */
    size_t n_streams;
    size_t *slots, n_slots; /* while the frames are looked at: hash table, index into streams plus one */
    struct object_ref *objects;
    size_t n_objects;
    char *header_text, *end_text; /* terminated; end_text NULL: none */
    struct json header, end;      /* the same, parsed; end.at NULL: none */
};

/* Opens DIR (with its file `log`), or a file `log` itself. NULL: why[WHY_MAX] says. */
/* Beside the log: instructions of the whole recording, once a replay has counted them. */
#define COUNT_FILE "instructions"

struct recording *recording_open(const char *dir, char *why);
/* The same on bytes in memory, which must stay there. */
struct recording *recording_from_memory(const void *bytes, size_t n, char *why);
void recording_close(struct recording *);

/* Checks every payload and that it decompresses; cuts the recording at the first one that is wrong. False: it was cut. */
bool recording_verify(struct recording *);
/* Whether something is wrong that a sudden death of the controller does not explain: that leaves a last frame too short. */
bool recording_is_damaged(const struct recording *);
/* Whether recording stopped before the program did, and why. */
bool recording_was_stopped(const struct recording *, char *reason, size_t cap);
/* One line about `cut`, or "" when the recording is whole or under way. */
void recording_cut_text(const struct recording *, char *text, size_t cap);

const struct stream_ref *recording_stream(const struct recording *, uint64_t number); /* NULL: none */

/* Raw bytes of a stream, frame by frame. `position` may be anywhere: the first frame given is the one that holds it. */
struct stream_reader {
    const struct recording *recording;
    const struct stream_ref *stream;
    size_t next;       /* place in stream->frames */
    uint64_t position; /* of raw[0] in the stream */
    uint8_t *raw;      /* the frame at hand */
    size_t raw_len;
    uint8_t *payload; /* room for one */
    char why[256];    /* after READ_DAMAGED */
};

enum read_result { READ_GOT, READ_NONE, READ_DAMAGED };

/* False: out of memory, or no frame holds `position` (the end of the stream is fine). */
bool stream_reader_open(struct stream_reader *, const struct recording *, const struct stream_ref *, uint64_t position);
enum read_result
stream_reader_next(struct stream_reader *); /* READ_GOT: raw, raw_len and position are of the next frame */
void stream_reader_close(struct stream_reader *);

/* Checks one event at `bytes`, of which there are n. Returns NULL if it may be used as what its kind says: size, payload and
 * the lengths inside are right; otherwise what is wrong. */
const char *event_check(const void *bytes, size_t n);
const char *event_kind_name(unsigned kind); /* "SYSCALL"; NULL: no such kind */
size_t event_payload_size(unsigned kind);   /* of the struct behind the head, without bytes that follow it */

/* What follows the head of an event that event_check() liked. */
#define EVENT_PAYLOAD(e, type) ((const struct type *)((e) + 1))
/* Bytes of a MEMORY or OUT event. */
static inline const uint8_t *event_bytes(const struct event *e) {
    return (const uint8_t *)(EVENT_PAYLOAD(e, ev_memory) + 1);
}

/* Events of a stream, one after the other, each of them checked. */
struct event_reader {
    struct stream_reader stream;
    size_t at;         /* in stream.raw */
    uint64_t number;   /* of the event given last, from 0 in the stream */
    uint64_t position; /* of that event in the stream */
    uint64_t given;    /* events given so far */
    char why[256];     /* after READ_DAMAGED */
};

bool event_reader_open(struct event_reader *, const struct recording *, const struct stream_ref *);
/* The same from an event at `position` on; numbers count from there. */
bool event_reader_open_at(struct event_reader *, const struct recording *, const struct stream_ref *,
                          uint64_t position);
/* READ_GOT: *event is valid until the next call. READ_DAMAGED: once, then READ_NONE. */
enum read_result event_reader_next(struct event_reader *, const struct event **event);
void event_reader_close(struct event_reader *);

#endif

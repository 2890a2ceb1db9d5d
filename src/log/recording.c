/* Reading a recording, see recording.h. */
#include "log/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define PATH_LEN_MAX 65536 /* of an object: no path of Linux is longer than 4096, but one can be pieced together */

/* ---- bytes of the file ---- */

/* False: they are not there. The file may shrink under us, so this is asked anew every time. */
static bool read_at(const struct recording *r, uint64_t offset, void *to, size_t n) {
    if (offset > r->size || n > r->size - offset) return false;
    if (r->bytes) {
        memcpy(to, r->bytes + offset, n);
        return true;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(r->fd, (char *)to + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

/* The raw bytes of a frame. `payload` has room for head.len, `raw` for head.raw_len. */
static enum frame_fault read_frame(const struct recording *r, const struct frame_ref *f, void *payload, void *raw) {
    if (!read_at(r, f->offset + sizeof f->head, payload, f->head.len)) return FRAME_SHORT;
    return frame_decode(&f->head, payload, raw);
}

/* The same, allocated and terminated. */
static enum frame_fault load_frame(const struct recording *r, const struct frame_ref *f, uint8_t **raw) {
    uint8_t *payload = malloc(f->head.len), *out = malloc((size_t)f->head.raw_len + 1);
    enum frame_fault fault = payload && out ? read_frame(r, f, payload, out) : FRAME_SHORT;
    free(payload);
    if (fault) {
        free(out);
        return fault;
    }
    out[f->head.raw_len] = '\0';
    *raw = out;
    return FRAME_OK;
}

/* ---- the index ---- */

/* Room for one more element behind n. There is room for 8, and for the next power of two from then on. */
static bool grow(void **list, size_t n, size_t size) {
    if (n ? n < 8 || n & (n - 1) : *list != NULL) return true;
    void *bigger = realloc(*list, (n ? 2 * n : 8) * size);
    if (!bigger) return false;
    *list = bigger;
    return true;
}

static bool take_text(const struct recording *r, const struct frame_ref *f, char **text, struct json *parsed,
                      enum frame_fault *fault) {
    uint8_t *raw;
    if ((*fault = load_frame(r, f, &raw))) return false;
    if (!json_parse((char *)raw, f->head.raw_len, parsed) || *parsed->at != '{') {
        free(raw);
        *parsed = (struct json){0};
        *fault = FRAME_BAD_CONTENT;
        return false;
    }
    *text = (char *)raw;
    return true;
}

static bool take_object(struct recording *r, const struct frame_ref *f, enum frame_fault *fault) {
    uint8_t *raw;
    struct object_ref o;
    if ((*fault = load_frame(r, f, &raw))) return false;
    *fault = FRAME_BAD_CONTENT;
    size_t n = f->head.raw_len;
    if (n >= sizeof o.object) memcpy(&o.object, raw, sizeof o.object);
    if (n < sizeof o.object || o.object.path_len > PATH_LEN_MAX || o.object.path_len > n - sizeof o.object ||
        memchr(raw + sizeof o.object, '\0', o.object.path_len) || (o.object.name.lo == 0 && o.object.name.hi == 0)) {
        free(raw);
        return false;
    }
    o.path = strndup((char *)raw + sizeof o.object, o.object.path_len);
    free(raw);
    if (!o.path || !grow((void **)&r->objects, r->n_objects, sizeof *r->objects)) {
        free(o.path);
        return false;
    }
    r->objects[r->n_objects++] = o;
    *fault = FRAME_OK;
    return true;
}

static int by_number(const void *a, const void *b) {
    const struct stream_ref *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

const struct stream_ref *recording_stream(const struct recording *r, uint64_t number) {
    struct stream_ref key = {.number = number};
    return r->n_streams ? bsearch(&key, r->streams, r->n_streams, sizeof key, by_number) : NULL;
}

/* The slot that has the stream, or where it would be. */
static size_t *slot_of(const struct recording *r, uint64_t number) {
    size_t at = XXH3_64bits(&number, sizeof number) & (r->n_slots - 1);
    while (r->slots[at] && r->streams[r->slots[at] - 1].number != number) at = (at + 1) & (r->n_slots - 1);
    return &r->slots[at];
}

/* Keeps at least half of the slots free. */
static bool grow_slots(struct recording *r) {
    if (2 * (r->n_streams + 1) <= r->n_slots) return true;
    size_t n = r->n_slots ? 2 * r->n_slots : 64;
    size_t *slots = calloc(n, sizeof *slots);
    if (!slots) return false;
    free(r->slots);
    r->slots = slots;
    r->n_slots = n;
    for (size_t i = 0; i < r->n_streams; i++) *slot_of(r, r->streams[i].number) = i + 1;
    return true;
}

/* The stream of that number, made if it is new. */
static struct stream_ref *stream_for(struct recording *r, uint64_t number) {
    if (!grow_slots(r)) return NULL;
    size_t *slot = slot_of(r, number);
    if (*slot) return &r->streams[*slot - 1];
    if (!grow((void **)&r->streams, r->n_streams, sizeof *r->streams)) return NULL;
    r->streams[r->n_streams] = (struct stream_ref){.number = number};
    *slot = ++r->n_streams;
    return &r->streams[*slot - 1];
}

static bool take_events(struct recording *r, const struct frame_ref *f, enum frame_fault *fault) {
    *fault = FRAME_MISPLACED;
    struct stream_ref *s = stream_for(r, f->head.stream);
    if (!s || f->head.position != s->raw_len || !grow((void **)&s->frames, s->n_frames, sizeof *s->frames))
        return false;
    s->frames[s->n_frames++] = r->n_frames;
    s->raw_len += f->head.raw_len;
    s->stored_len += sizeof f->head + f->head.len;
    if (f->head.raw_len > s->largest) s->largest = f->head.raw_len;
    *fault = FRAME_OK;
    return true;
}

/* Takes one frame into the index. False: it is wrong, and the recording ends in front of it. */
static bool take_frame(struct recording *r, const struct frame_ref *f, enum frame_fault *fault) {
    bool first = r->n_frames == 0, header = f->head.kind == FRAME_HEADER;
    *fault = FRAME_MISPLACED;
    if (first != header || r->end_text || f->head.kind > FRAME_END) return false;
    if (!grow((void **)&r->frames, r->n_frames, sizeof *r->frames)) return false;
    switch (f->head.kind) {
    case FRAME_HEADER:
        if (!take_text(r, f, &r->header_text, &r->header, fault)) return false;
        break;
    case FRAME_END:
        if (!take_text(r, f, &r->end_text, &r->end, fault)) return false;
        break;
    case FRAME_OBJECT:
        if (!take_object(r, f, fault)) return false;
        break;
    case FRAME_EVENTS:
        if (!take_events(r, f, fault)) return false;
        break;
    }
    r->frames[r->n_frames++] = *f;
    *fault = FRAME_OK;
    return true;
}

/* The frame at an offset: its head, and that its payload is there. */
static enum frame_fault look_at(const struct recording *r, uint64_t offset, struct frame_ref *f) {
    uint8_t bytes[sizeof f->head];
    uint64_t left = r->size - offset;
    size_t n = left < sizeof bytes ? (size_t)left : sizeof bytes;
    if (!read_at(r, offset, bytes, n)) return FRAME_SHORT;
    f->offset = offset;
    enum frame_fault fault = frame_check_head(bytes, n, &f->head);
    if (fault) return fault;
    return f->head.len > left - sizeof bytes ? FRAME_SHORT : FRAME_OK;
}

/* Takes away streams without frames. */
static void drop_empty(struct recording *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->n_streams; i++) {
        if (r->streams[i].n_frames)
            r->streams[kept++] = r->streams[i];
        else
            free(r->streams[i].frames);
    }
    r->n_streams = kept;
}

static void scan(struct recording *r) {
    struct frame_ref f;
    uint64_t offset = 0;
    while (offset < r->size) {
        r->fault = look_at(r, offset, &f);
        if (r->fault || !take_frame(r, &f, &r->fault)) break;
        offset += sizeof f.head + f.head.len;
    }
    r->cut = offset;
    free(r->slots);
    r->slots = NULL;
    drop_empty(r);
    if (r->n_streams) qsort(r->streams, r->n_streams, sizeof *r->streams, by_number);
}

/* ---- opening ---- */

void recording_close(struct recording *r) {
    if (!r) return;
    for (size_t i = 0; i < r->n_streams; i++) free(r->streams[i].frames);
    for (size_t i = 0; i < r->n_objects; i++) free(r->objects[i].path);
    free(r->streams);
    free(r->objects);
    free(r->frames);
    free(r->header_text);
    free(r->end_text);
    free(r->dir);
    if (r->fd >= 0) close(r->fd);
    free(r);
}

/* Why a recording without a header cannot be used. */
static void say_no_header(const struct recording *r, const char *name, char *why) {
    struct frame_head head;
    if (r->size == 0)
        snprintf(why, WHY_MAX, "%s is empty: it was cut off before anything was recorded", name);
    else if (r->fault == FRAME_BAD_MAGIC || (r->fault == FRAME_SHORT && r->size < sizeof head))
        snprintf(why, WHY_MAX, "%s is no recording of Reprise (%s)", name, frame_fault_text(r->fault));
    else if (r->fault == FRAME_MISPLACED && read_at(r, 0, &head, sizeof head) && head.kind == PACK_HEADER)
        snprintf(why, WHY_MAX, "%s is a packed recording: unpack it first, with `reprise unpack %s`", name, name);
    else if (r->fault == FRAME_BAD_VERSION && read_at(r, 0, &head, sizeof head))
        snprintf(why, WHY_MAX,
                 "%s has version %u of the log format, this Reprise reads version %u: use the one that made it", name,
                 head.version, LOG_VERSION);
    else
        snprintf(why, WHY_MAX, "%s cannot be used, its header is damaged (%s)", name, frame_fault_text(r->fault));
}

static struct recording *new_recording(char *why) {
    struct recording *r = calloc(1, sizeof *r);
    if (!r) {
        snprintf(why, WHY_MAX, "out of memory");
        return NULL;
    }
    r->fd = -1;
    return r;
}

static struct recording *scan_new(struct recording *r, const char *name, char *why) {
    scan(r);
    if (r->header_text) return r;
    say_no_header(r, name, why);
    recording_close(r);
    return NULL;
}

struct recording *recording_from_memory(const void *bytes, size_t n, char *why) {
    struct recording *r = new_recording(why);
    if (!r) return NULL;
    r->bytes = bytes;
    r->size = n;
    return scan_new(r, "the recording", why);
}

/* The log's descriptor: of DIR/log, or of a file that is the log itself. */
static int open_log(const char *dir, char *name, size_t cap, char *why) {
    struct stat st;
    if (stat(dir, &st) < 0) {
        snprintf(why, WHY_MAX, "%s: %s; `reprise ls` lists the recordings", dir, strerror(errno));
        return -1;
    }
    snprintf(name, cap, S_ISDIR(st.st_mode) ? "%s/log" : "%s", dir);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        snprintf(why, WHY_MAX, "%s is no recording: it has no file `log`", dir);
    } else if (fd < 0) {
        snprintf(why, WHY_MAX, "cannot open %s: %s", name, strerror(errno));
    } else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        snprintf(why, WHY_MAX, "%s is no recording: not a regular file", name);
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Whether a controller holds the lock on the log. */
static bool is_locked(int fd) {
    if (flock(fd, LOCK_SH | LOCK_NB) < 0) return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

struct recording *recording_open(const char *dir, char *why) {
    char name[PATH_MAX + 8];
    struct stat st;
    struct recording *r = new_recording(why);
    if (!r) return NULL;
    r->fd = open_log(dir, name, sizeof name, why);
    if (r->fd < 0 || fstat(r->fd, &st) < 0) {
        recording_close(r);
        return NULL;
    }
    r->under_way = is_locked(r->fd);
    r->size = (uint64_t)st.st_size;
    r->dir = strdup(dir);
    if (!r->dir) {
        snprintf(why, WHY_MAX, "out of memory");
        recording_close(r);
        return NULL;
    }
    return scan_new(r, name, why);
}

/* ---- the whole ---- */

/* Takes away the frames from `first` on. */
static void cut_at(struct recording *r, size_t first, enum frame_fault fault) {
    for (size_t i = r->n_frames; i-- > first;) {
        const struct frame_head *h = &r->frames[i].head;
        if (h->kind == FRAME_END) {
            free(r->end_text);
            r->end_text = NULL;
            r->end = (struct json){0};
        } else if (h->kind == FRAME_OBJECT) {
            free(r->objects[--r->n_objects].path);
        } else if (h->kind == FRAME_EVENTS) {
            struct stream_ref *s = (struct stream_ref *)recording_stream(r, h->stream);
            s->n_frames--;
            s->raw_len -= h->raw_len;
            s->stored_len -= sizeof *h + h->len;
        }
    }
    drop_empty(r);
    r->n_frames = first;
    r->cut = r->frames[first].offset;
    r->fault = fault;
}

bool recording_verify(struct recording *r) {
    size_t largest = 1;
    for (size_t i = 0; i < r->n_streams; i++)
        if (r->streams[i].largest > largest) largest = r->streams[i].largest;
    uint8_t *payload = malloc(largest), *raw = malloc(largest);
    bool whole = payload && raw;
    for (size_t i = 0; whole && i < r->n_frames; i++) {
        if (r->frames[i].head.kind != FRAME_EVENTS) continue; /* those were read when the recording was opened */
        enum frame_fault fault = read_frame(r, &r->frames[i], payload, raw);
        if (!fault) continue;
        cut_at(r, i, fault);
        whole = false;
    }
    free(payload);
    free(raw);
    return whole && r->cut == r->size;
}

bool recording_is_damaged(const struct recording *r) {
    return r->cut < r->size && (r->fault != FRAME_SHORT || r->end_text);
}

bool recording_was_stopped(const struct recording *r, char *reason, size_t cap) {
    reason[0] = '\0';
    bool is_there = json_is(r->end) && json_member_string(r->end, "reason", reason, cap);
    if (is_there && strcmp(reason, "end") == 0) reason[0] = '\0';
    return reason[0];
}

void recording_cut_text(const struct recording *r, char *text, size_t cap) {
    text[0] = '\0';
    if (recording_is_damaged(r))
        snprintf(text, cap, "damaged at byte %lu of %lu (%s): what comes before counts", r->cut, r->size,
                 frame_fault_text(r->fault));
    else if (!r->end_text && !r->under_way)
        snprintf(text, cap, "cut off at byte %lu: it has no end, what was written before counts", r->cut);
}

/* ---- raw bytes of a stream ---- */

bool stream_reader_open(struct stream_reader *s, const struct recording *r, const struct stream_ref *stream,
                        uint64_t position) {
    *s = (struct stream_reader){.recording = r, .stream = stream};
    if (position > stream->raw_len) return false;
    while (s->next < stream->n_frames) {
        const struct frame_head *h = &r->frames[stream->frames[s->next]].head;
        if (position < h->position + h->raw_len) break;
        s->next++;
    }
    s->raw = malloc(stream->largest);
    s->payload = malloc(stream->largest);
    if (s->raw && s->payload) return true;
    stream_reader_close(s);
    return false;
}

enum read_result stream_reader_next(struct stream_reader *s) {
    if (s->next >= s->stream->n_frames) return READ_NONE;
    const struct frame_ref *f = &s->recording->frames[s->stream->frames[s->next++]];
    enum frame_fault fault = read_frame(s->recording, f, s->payload, s->raw);
    if (fault) {
        snprintf(s->why, sizeof s->why, "stream %lu, frame at byte %lu: %s", s->stream->number, f->offset,
                 frame_fault_text(fault));
        s->next = s->stream->n_frames; /* a stream ends where it is damaged */
        return READ_DAMAGED;
    }
    s->position = f->head.position;
    s->raw_len = f->head.raw_len;
    return READ_GOT;
}

void stream_reader_close(struct stream_reader *s) {
    free(s->raw);
    free(s->payload);
    s->raw = s->payload = NULL;
}

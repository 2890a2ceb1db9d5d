/* Frames: what the file `log` of a recording consists of. Normative text: docs/formats.md.
 *
 * The file is a sequence of frames, appended in the order in which the controller got the data. A frame is complete when its
 * checksum is right; the first one that is not ends the recording. */
#ifndef REPRISE_LOG_FRAME_H
#define REPRISE_LOG_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "log/events.h"

#define FRAME_MAGIC 0x31465052u /* "RPF1" */
#define LOG_VERSION 1
#define FRAME_RAW_MAX (4u << 20)

enum frame_kind {
    FRAME_HEADER = 1, /* first frame: JSON text, see docs/formats.md */
    FRAME_EVENTS = 2, /* whole events of `stream` */
    FRAME_OBJECT = 3, /* struct frame_object: a file that the recording needs */
    FRAME_END = 4,    /* JSON text: how the recording ended; last frame */

    /* of a packed recording, see pack.h */
    PACK_HEADER = 16, /* first frame: JSON text */
    PACK_LOG = 17,    /* bytes of the file `log` from `position` on */
    PACK_OBJECT = 18, /* struct frame_object: what the PACK_DATA behind it belongs to */
    PACK_DATA = 19,   /* bytes of the object or file from `position` on */
    PACK_END = 20,    /* JSON text; last frame */
    PACK_FILE = 21,   /* struct frame_file: another file of the recording, which the PACK_DATA behind it belongs to */
};

enum frame_compression { FRAME_STORED = 0, FRAME_ZSTD = 1 };

struct frame_head {
    uint32_t magic;
    uint8_t kind;
    uint8_t compression; /* enum frame_compression */
    uint16_t version;
    uint64_t stream;       /* EVENTS */
    uint64_t position;     /* EVENTS: bytes of the stream before this frame. PACK_LOG, PACK_DATA: of the file */
    uint32_t raw_len, len; /* payload: bytes as events, bytes as stored */
    uint64_t payload_hash; /* XXH3 64 of the stored payload */
    uint64_t head_hash;    /* XXH3 64 of everything above */
};
_Static_assert(sizeof(struct frame_head) == 48, "frame_head");

struct frame_object {
    struct object_name name;
    uint64_t size;
    uint64_t dev, ino, mtime_ns, ctime_ns;
    uint32_t mode, path_len; /* path follows, not terminated */
};
_Static_assert(sizeof(struct frame_object) == 64, "frame_object");

struct frame_file {
    uint64_t size;
    uint32_t name_len, reserved; /* name follows, not terminated */
};
_Static_assert(sizeof(struct frame_file) == 16, "frame_file");

/* ---- functions of the readers and the controller (libc, zstd, xxHash); the runtime uses the types alone ---- */

/* What can be wrong with a frame. */
enum frame_fault {
    FRAME_OK,
    FRAME_SHORT,       /* the bytes end before the frame does */
    FRAME_BAD_MAGIC,   /* no frame starts here */
    FRAME_BAD_HEAD,    /* checksum of the head */
    FRAME_BAD_VERSION, /* made by another version of the format */
    FRAME_BAD_FIELD,   /* kind, compression or a length that no writer writes */
    FRAME_BAD_PAYLOAD, /* checksum of the payload */
    FRAME_BAD_ZSTD,    /* the payload does not decompress to raw_len bytes */
    FRAME_MISPLACED,   /* no header first, a second one, a frame behind END, a position that does not go on */
    FRAME_BAD_CONTENT, /* the payload is no JSON text, no struct frame_object */
};
const char *frame_fault_text(enum frame_fault);

/* Room that a frame with `raw_len` raw bytes needs at most. */
static inline size_t frame_room(size_t raw_len) { return sizeof(struct frame_head) + raw_len; }

/* Writes a whole frame, head and payload, into out (frame_room(raw_len) bytes); returns its length, or 0 if raw_len is 0 or
 * more than FRAME_RAW_MAX. `context` is a ZSTD_CCtx to be used again and again; NULL: store without compression. The payload
 * is stored as it is when compressing does not make it smaller. */
struct ZSTD_CCtx_s;
size_t frame_encode(struct ZSTD_CCtx_s *context, int level, enum frame_kind kind, uint64_t stream, uint64_t position,
                    const void *raw, size_t raw_len, void *out);

/* Checks the head at `bytes`, of which there are `n` (the payload need not be among them), and copies it out. Every field is
 * within its bounds when this returns FRAME_OK; whether `len` bytes follow is for the caller to see. */
enum frame_fault frame_check_head(const void *bytes, size_t n, struct frame_head *head);

/* Checks the payload of a head that frame_check_head() liked: `payload` has head->len bytes. */
enum frame_fault frame_check_payload(const struct frame_head *head, const void *payload);

/* The same, and writes head->raw_len bytes to `raw`. */
enum frame_fault frame_decode(const struct frame_head *head, const void *payload, void *raw);

#endif

/* Frames: what the file `log` of a recording consists of. Normative text: docs/formats.md.
 *
 * The file is a sequence of frames, appended in the order in which the controller got the data. A frame is complete when its
 * checksum is right; the first one that is not ends the recording. */
#ifndef REPRISE_LOG_FRAME_H
#define REPRISE_LOG_FRAME_H

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
};

struct frame_head {
    uint32_t magic;
    uint8_t kind;
    uint8_t compression; /* 0 none, 1 zstd */
    uint16_t version;
    uint64_t stream;       /* EVENTS */
    uint64_t position;     /* EVENTS: bytes of the stream before this frame */
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

#endif

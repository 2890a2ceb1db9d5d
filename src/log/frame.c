/* Frames: encoding, and decoding of bytes that nobody vouches for. */
#include "log/frame.h"

#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#define HASHED_HEAD offsetof(struct frame_head, head_hash)

const char *frame_fault_text(enum frame_fault fault) {
    switch (fault) {
    case FRAME_OK: return "no fault";
    case FRAME_SHORT: return "the file ends in the middle of a frame";
    case FRAME_BAD_MAGIC: return "no frame where one should start";
    case FRAME_BAD_HEAD: return "wrong checksum of a frame's head";
    case FRAME_BAD_VERSION: return "another version of the log format";
    case FRAME_BAD_FIELD: return "a field of a frame's head is out of range";
    case FRAME_BAD_PAYLOAD: return "wrong checksum of a frame's payload";
    case FRAME_BAD_ZSTD: return "a payload that does not decompress";
    case FRAME_MISPLACED: return "a frame that does not belong where it is";
    case FRAME_BAD_CONTENT: return "a payload that makes no sense";
    }
    return "unknown fault";
}

/* The compressed length, or 0: store it as it is. */
static size_t compress(struct ZSTD_CCtx_s *context, int level, const void *raw, size_t raw_len, void *out) {
    if (!context) return 0;
    size_t n = ZSTD_compressCCtx(context, out, raw_len, raw, raw_len, level); /* an error, too, when it grows */
    return ZSTD_isError(n) || n >= raw_len ? 0 : n;
}

static int has_position(unsigned kind) { return kind == FRAME_EVENTS || kind == PACK_LOG || kind == PACK_DATA; }

size_t frame_encode(struct ZSTD_CCtx_s *context, int level, enum frame_kind kind, uint64_t stream, uint64_t position,
                    const void *raw, size_t raw_len, void *out) {
    if (raw_len == 0 || raw_len > FRAME_RAW_MAX) return 0;
    uint8_t *payload = (uint8_t *)out + sizeof(struct frame_head);
    size_t len = compress(context, level, raw, raw_len, payload);
    struct frame_head head = {
        .magic = FRAME_MAGIC,
        .kind = (uint8_t)kind,
        .compression = len ? FRAME_ZSTD : FRAME_STORED,
        .version = LOG_VERSION,
        .stream = kind == FRAME_EVENTS ? stream : 0,
        .position = has_position(kind) ? position : 0,
        .raw_len = (uint32_t)raw_len,
        .len = (uint32_t)(len ? len : raw_len),
    };
    if (!len) memcpy(payload, raw, raw_len);
    head.payload_hash = XXH3_64bits(payload, head.len);
    head.head_hash = XXH3_64bits(&head, HASHED_HEAD);
    memcpy(out, &head, sizeof head);
    return sizeof head + head.len;
}

static int fields_in_range(const struct frame_head *h) {
    if (!(h->kind >= FRAME_HEADER && h->kind <= FRAME_END) && !(h->kind >= PACK_HEADER && h->kind <= PACK_FILE))
        return 0;
    if (h->raw_len == 0 || h->raw_len > FRAME_RAW_MAX || h->len == 0) return 0;
    switch (h->compression) {
    case FRAME_STORED:
        if (h->len != h->raw_len) return 0;
        break;
    case FRAME_ZSTD:
        if (h->len >= h->raw_len) return 0;
        break;
    default: return 0;
    }
    if (h->kind == FRAME_EVENTS && h->raw_len % 8) return 0;
    if (h->kind != FRAME_EVENTS && h->stream) return 0;
    return has_position(h->kind) ? h->position <= UINT64_MAX - h->raw_len : h->position == 0;
}

enum frame_fault frame_check_head(const void *bytes, size_t n, struct frame_head *head) {
    if (n < sizeof *head) return FRAME_SHORT;
    memcpy(head, bytes, sizeof *head);
    if (head->magic != FRAME_MAGIC) return FRAME_BAD_MAGIC;
    if (head->head_hash != XXH3_64bits(head, HASHED_HEAD)) return FRAME_BAD_HEAD;
    if (head->version != LOG_VERSION) return FRAME_BAD_VERSION;
    return fields_in_range(head) ? FRAME_OK : FRAME_BAD_FIELD;
}

enum frame_fault frame_check_payload(const struct frame_head *head, const void *payload) {
    return XXH3_64bits(payload, head->len) == head->payload_hash ? FRAME_OK : FRAME_BAD_PAYLOAD;
}

enum frame_fault frame_decode(const struct frame_head *head, const void *payload, void *raw) {
    enum frame_fault fault = frame_check_payload(head, payload);
    if (fault) return fault;
    if (head->compression == FRAME_STORED) {
        memcpy(raw, payload, head->raw_len);
        return FRAME_OK;
    }
    return ZSTD_decompress(raw, head->raw_len, payload, head->len) == head->raw_len ? FRAME_OK : FRAME_BAD_ZSTD;
}

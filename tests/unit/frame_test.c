// link: src/log/frame.c
// libs: -lzstd -lxxhash
/* Frames: what is encoded comes back, and every kind of wrong byte is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include <cmocka.h>

#include "log/frame.h"

static void round_trip(ZSTD_CCtx *context, const void *raw, size_t n, int compression) {
    uint8_t *frame = malloc(frame_room(n)), *back = malloc(n);
    struct frame_head h;
    size_t len = frame_encode(context, 1, FRAME_EVENTS, 7, 4096, raw, n, frame);
    assert_in_range(len, sizeof h + 1, frame_room(n));
    assert_int_equal(frame_check_head(frame, len, &h), FRAME_OK);
    assert_int_equal(h.compression, compression);
    assert_int_equal(h.stream, 7);
    assert_int_equal(h.position, 4096);
    assert_int_equal(h.raw_len, n);
    assert_int_equal(h.len, len - sizeof h);
    assert_int_equal(frame_decode(&h, frame + sizeof h, back), FRAME_OK);
    assert_memory_equal(back, raw, n);
    free(frame);
    free(back);
}

static void test_round_trip(void **state) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    uint8_t *raw = malloc(FRAME_RAW_MAX);
    uint64_t x = 1;
    memset(raw, 'a', FRAME_RAW_MAX);
    round_trip(context, raw, 800, FRAME_ZSTD);
    round_trip(context, raw, FRAME_RAW_MAX, FRAME_ZSTD);
    round_trip(NULL, raw, 800, FRAME_STORED);
    round_trip(context, raw, 8, FRAME_STORED); /* does not get smaller */
    for (size_t i = 0; i < FRAME_RAW_MAX; i++) raw[i] = (uint8_t)((x = x * 6364136223846793005ull + 1) >> 56);
    round_trip(context, raw, FRAME_RAW_MAX, FRAME_STORED);
    free(raw);
    ZSTD_freeCCtx(context);
}

static void test_refuses_lengths(void **state) {
    static uint8_t raw[8], out[sizeof(struct frame_head) + 8];
    assert_int_equal(frame_encode(NULL, 1, FRAME_EVENTS, 0, 0, raw, 0, out), 0);
    assert_int_equal(frame_encode(NULL, 1, FRAME_EVENTS, 0, 0, raw, FRAME_RAW_MAX + 1, out), 0);
}

/* Streams and positions are of EVENTS alone. */
static void test_other_kinds(void **state) {
    uint8_t out[256];
    struct frame_head h;
    size_t n = frame_encode(NULL, 1, FRAME_HEADER, 5, 6, "{}", 2, out);
    assert_int_equal(frame_check_head(out, n, &h), FRAME_OK);
    assert_int_equal(h.stream | h.position, 0);
}

/* A flipped bit anywhere in a frame is found. */
static void test_flipped_bits(void **state) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    uint8_t raw[400] = {1, 2, 3}, out[512], back[400];
    struct frame_head h;
    size_t n = frame_encode(context, 1, FRAME_EVENTS, 1, 0, raw, sizeof raw, out);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
        enum frame_fault fault = frame_check_head(out, n, &h);
        if (!fault) fault = frame_decode(&h, out + sizeof h, back);
        assert_int_equal(fault, bit < 32 ? FRAME_BAD_MAGIC : bit < 8 * sizeof h ? FRAME_BAD_HEAD : FRAME_BAD_PAYLOAD);
        assert_true(frame_fault_text(fault)[0] != '\0');
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < sizeof h; cut++) assert_int_equal(frame_check_head(out, cut, &h), FRAME_SHORT);
    ZSTD_freeCCtx(context);
}

static void hash_head(struct frame_head *h) { h->head_hash = XXH3_64bits(h, offsetof(struct frame_head, head_hash)); }

/* Right checksums over wrong fields. */
static void test_wrong_fields(void **state) {
    struct frame_head good = {FRAME_MAGIC, FRAME_EVENTS, FRAME_STORED, LOG_VERSION, 1, 0, 24, 24, 0, 0}, h, got;
#define EXPECT(fault, ...)                                             \
    do {                                                               \
        h = good;                                                      \
        __VA_ARGS__;                                                   \
        hash_head(&h);                                                 \
        assert_int_equal(frame_check_head(&h, sizeof h, &got), fault); \
    } while (0)
    EXPECT(FRAME_OK, (void)0);
    EXPECT(FRAME_BAD_VERSION, h.version = 2);
    EXPECT(FRAME_BAD_FIELD, h.kind = 0);
    EXPECT(FRAME_BAD_FIELD, h.kind = 5);
    EXPECT(FRAME_BAD_FIELD, h.kind = 255);
    EXPECT(FRAME_BAD_FIELD, h.compression = 2);
    EXPECT(FRAME_BAD_FIELD, h.len = 16);
    EXPECT(FRAME_BAD_FIELD, h.len = h.raw_len = 0);
    EXPECT(FRAME_BAD_FIELD, h.len = h.raw_len = FRAME_RAW_MAX + 8);
    EXPECT(FRAME_OK, h.len = h.raw_len = FRAME_RAW_MAX);
    EXPECT(FRAME_BAD_FIELD, h.len = h.raw_len = 25);
    EXPECT(FRAME_BAD_FIELD, h.compression = FRAME_ZSTD); /* not smaller */
    EXPECT(FRAME_BAD_FIELD, h.position = UINT64_MAX - 8);
    EXPECT(FRAME_BAD_FIELD, h.kind = FRAME_HEADER); /* with a stream */
}

static void test_bad_zstd(void **state) {
    uint8_t raw[4096] = {0}, packed[4096], back[8192];
    size_t n = ZSTD_compress(packed, sizeof packed, raw, sizeof raw, 1);
    struct frame_head h = {.len = (uint32_t)n, .compression = FRAME_ZSTD, .payload_hash = XXH3_64bits(packed, n)};
    h.raw_len = 4096;
    assert_int_equal(frame_decode(&h, packed, back), FRAME_OK);
    h.raw_len = 4095;
    assert_int_equal(frame_decode(&h, packed, back), FRAME_BAD_ZSTD);
    h.raw_len = 4097;
    assert_int_equal(frame_decode(&h, packed, back), FRAME_BAD_ZSTD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_refuses_lengths), cmocka_unit_test(test_other_kinds),
        cmocka_unit_test(test_flipped_bits), cmocka_unit_test(test_wrong_fields),    cmocka_unit_test(test_bad_zstd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

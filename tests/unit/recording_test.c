// link: src/log/frame.c src/log/json.c src/log/recording.c src/log/event.c src/log/summary.c src/log/place.c
// libs: -lzstd -lxxhash
/* The readers of recordings: index, streams, events, summary, where a damaged recording ends, and the JSON of its texts. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cmocka.h>

#include "log/recording.h"
#include "log/summary.h"

/* ---- a log in memory ---- */

static uint8_t log_bytes[1 << 20];
static size_t log_len;
static char why[WHY_MAX];

static size_t put(enum frame_kind kind, uint64_t stream, uint64_t position, const void *raw, size_t n) {
    static ZSTD_CCtx *context;
    if (!context) context = ZSTD_createCCtx();
    size_t at = log_len;
    log_len += frame_encode(context, 1, kind, stream, position, raw, n, log_bytes + log_len);
    return at;
}

static void put_header(void) {
    log_len = 0;
    static const char text[] = "{\"command\": [\"a\"]}";
    put(FRAME_HEADER, 0, 0, text, sizeof text - 1);
}

static void put_end(void) { put(FRAME_END, 0, 0, "{\"status\": 0}", 13); }

/* Events one behind the other. */
static uint8_t events[65536 * 2];
static size_t events_len;

static void add(uint8_t kind, uint32_t thread, uint64_t ticks, const void *payload, size_t n) {
    size_t size = sizeof(struct event) + (n + 7) / 8 * 8;
    struct event e = {.kind = kind, .size = (uint32_t)size, .thread = thread, .ticks = ticks};
    memset(events + events_len, 0, size);
    memcpy(events + events_len, &e, sizeof e);
    if (n) memcpy(events + events_len + sizeof e, payload, n);
    events_len += size;
}

static void add_start(uint32_t pid) {
    struct ev_start s = {.pid = pid, .ppid = 1, .parent = UINT64_MAX, .arg_start = 1000, .arg_end = 1008};
    strcpy(s.exe, "/bin/a");
    add(EV_START, 0, 0, &s, sizeof s);
}

static void add_memory(uint8_t kind, uint64_t addr, const char *bytes, uint32_t n) {
    uint8_t payload[256];
    struct ev_memory m = {.addr = addr, .len = n};
    memcpy(payload, &m, sizeof m);
    memcpy(payload + sizeof m, bytes, n);
    add(kind, 0, 0, payload, sizeof m + n);
}

static struct recording *open_log(void) {
    struct recording *r = recording_from_memory(log_bytes, log_len, why);
    if (!r) print_error("%s\n", why);
    assert_non_null(r);
    return r;
}

/* ---- tests ---- */

static void test_streams(void **state) {
    struct event_reader reader;
    const struct event *e;
    put_header();
    events_len = 0;
    add_start(5);
    size_t first = events_len;
    put(FRAME_EVENTS, 9, 0, events, first);
    add(EV_TURN, 0, 10, NULL, 0);
    add(EV_PREEMPT, 0, 20, NULL, 0);
    put(FRAME_EVENTS, 3, 0, events, first);
    put(FRAME_EVENTS, 9, first, events + first, events_len - first);
    put_end();

    struct recording *r = open_log();
    assert_int_equal(r->n_streams, 2);
    assert_int_equal(r->streams[0].number, 3);
    assert_int_equal(r->cut, r->size);
    assert_false(recording_is_damaged(r));
    assert_true(recording_verify(r));
    assert_null(recording_stream(r, 4));
    const struct stream_ref *s = recording_stream(r, 9);
    assert_int_equal(s->raw_len, events_len);
    assert_true(event_reader_open(&reader, r, s));
    static const uint8_t kinds[] = {EV_START, EV_TURN, EV_PREEMPT};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(event_reader_next(&reader, &e), READ_GOT);
        assert_int_equal(e->kind, kinds[i]);
        assert_int_equal(reader.number, i);
    }
    assert_int_equal(reader.position, events_len - 24);
    assert_int_equal(event_reader_next(&reader, &e), READ_NONE);
    event_reader_close(&reader);

    struct stream_reader raw;
    assert_true(stream_reader_open(&raw, r, s, first)); /* from the second frame on */
    assert_int_equal(stream_reader_next(&raw), READ_GOT);
    assert_int_equal(raw.position, first);
    assert_int_equal(raw.raw_len, 48);
    assert_int_equal(stream_reader_next(&raw), READ_NONE);
    stream_reader_close(&raw);
    assert_true(stream_reader_open(&raw, r, s, events_len));
    assert_int_equal(stream_reader_next(&raw), READ_NONE);
    stream_reader_close(&raw);
    assert_false(stream_reader_open(&raw, r, s, events_len + 1));
    recording_close(r);
}

/* Cut at any byte: what is whole before it counts, and only that. */
static void test_cut_anywhere(void **state) {
    put_header();
    size_t header = log_len;
    events_len = 0;
    add_start(5);
    put(FRAME_EVENTS, 0, 0, events, events_len);
    size_t middle = log_len;
    put(FRAME_EVENTS, 0, events_len, events, events_len);
    size_t last = log_len, whole;
    put_end();
    whole = log_len;
    for (log_len = 0; log_len <= whole; log_len++) {
        struct recording *r = recording_from_memory(log_bytes, log_len, why);
        assert_true((r != NULL) == (log_len >= header));
        if (!r) continue;
        size_t valid = log_len == whole ? whole : log_len >= last ? last : log_len >= middle ? middle : header;
        assert_int_equal(r->cut, valid);
        assert_int_equal(r->end_text != NULL, log_len == whole);
        assert_false(recording_is_damaged(r));
        recording_close(r);
    }
}

/* A wrong payload is found by verify, which takes away everything behind it, of all streams. */
static void test_verify_cuts(void **state) {
    struct frame_object object = {.name = {1, 2}, .size = 3};
    put_header();
    events_len = 0;
    add_start(5);
    put(FRAME_EVENTS, 0, 0, events, events_len);
    size_t bad = put(FRAME_EVENTS, 1, 0, events, events_len);
    put(FRAME_EVENTS, 2, 0, events, events_len);
    put(FRAME_EVENTS, 0, events_len, events, events_len);
    put(FRAME_OBJECT, 0, 0, &object, sizeof object);
    put_end();
    log_bytes[bad + 60] ^= 1;
    struct recording *r = open_log();
    assert_int_equal(r->n_streams, 3);
    assert_int_equal(r->n_objects, 1);
    struct event_reader reader;
    const struct event *e;
    assert_true(event_reader_open(&reader, r, recording_stream(r, 1)));
    assert_int_equal(event_reader_next(&reader, &e), READ_DAMAGED);
    assert_non_null(strstr(reader.why, "checksum"));
    assert_int_equal(event_reader_next(&reader, &e), READ_NONE);
    event_reader_close(&reader);

    assert_false(recording_verify(r));
    assert_true(recording_is_damaged(r));
    assert_int_equal(r->cut, bad);
    assert_int_equal(r->n_streams, 1);
    assert_int_equal(r->n_objects, 0);
    assert_int_equal(r->streams[0].raw_len, events_len);
    assert_null(r->end_text);
    char text[256];
    recording_cut_text(r, text, sizeof text);
    assert_non_null(strstr(text, "damaged"));
    recording_close(r);
}

static void test_event_check(void **state) {
    uint64_t room[32] = {0};
    struct event *e = (struct event *)room;
    struct ev_memory *m = (struct ev_memory *)(e + 1);
    *e = (struct event){.kind = EV_TURN, .size = 24};
    assert_null(event_check(e, 24));
    assert_null(event_check(e, 240));
    for (size_t n = 0; n < 24; n++) assert_non_null(event_check(e, n));
    e->size = 32;
    assert_non_null(event_check(e, 24));
    assert_null(event_check(e, 32));
    for (uint32_t size = 0; size < 24; size++) {
        e->size = size;
        assert_non_null(event_check(e, sizeof room));
    }
    e->size = 28;
    assert_non_null(event_check(e, sizeof room));
    for (unsigned kind = 0; kind < 256; kind++) {
        *e = (struct event){.kind = (uint8_t)kind, .size = 24};
        bool plain = kind == EV_TURN || kind == EV_PREEMPT || kind == EV_STOP;
        assert_int_equal(event_check(e, sizeof room) == NULL, plain);
        if (event_kind_name(kind)) assert_int_equal(event_payload_size(kind) == 0, plain);
    }
    *e = (struct event){.kind = EV_OUT, .size = 24 + 16 + 8};
    m->len = 8;
    assert_null(event_check(e, sizeof room));
    m->len = 9;
    assert_non_null(event_check(e, sizeof room));
    m->len = UINT32_MAX;
    assert_non_null(event_check(e, sizeof room));
}

static void test_summary(void **state) {
    struct ev_child clone = {.thread = 1};
    struct ev_exit end = {.status = 11};
    put_header();
    events_len = 0;
    add_start(5);
    add_memory(EV_MEMORY, 996, "....a\0b ", 8); /* 1000..1004 */
    add_memory(EV_MEMORY, 1004, "c\0d\0....", 8);
    add(EV_CLONE, 0, 50, &clone, sizeof clone);
    add(EV_TURN, 1, 0, NULL, 0);
    add(EV_PREEMPT, 1, 500, NULL, 0);
    add(EV_END, 0, 100, &end, sizeof end);
    put(FRAME_EVENTS, 0, 0, events, events_len);
    struct recording *r = open_log();
    struct summary *s = summary_of(r);
    const struct stream_facts *f = summary_stream(s, 0);
    assert_int_equal(f->pid, 5);
    assert_string_equal(f->exe, "/bin/a");
    assert_int_equal(f->words_len, 8);
    assert_memory_equal(f->words, "a\0b c\0d\0", 8);
    assert_int_equal(f->threads, 2);
    assert_int_equal(f->events, 7);
    assert_int_equal(f->ticks, 600);
    assert_int_equal(f->end, STREAM_EXITED);
    assert_int_equal(f->status, 11);
    assert_int_equal(f->interleaving_raw, 2 * 24 + 5 * 12);
    assert_true(f->interleaving_stored < f->stored_len);
    assert_string_equal(f->damage, "");
    assert_int_equal(s->processes, 1);
    summary_free(s);
    recording_close(r);
}

/* A command line of which a byte is missing is none. */
static void test_missing_words(void **state) {
    put_header();
    events_len = 0;
    add_start(5);
    add_memory(EV_MEMORY, 1000, "a\0b c\0d", 7);
    put(FRAME_EVENTS, 0, 0, events, events_len);
    struct recording *r = open_log();
    struct summary *s = summary_of(r);
    assert_null(s->streams[0].words);
    summary_free(s);
    recording_close(r);
}

static void test_files(void **state) {
    char dir[] = "/tmp/reprise-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    assert_null(recording_open(dir, why));
    assert_non_null(strstr(why, "no file `log`"));
    snprintf(path, sizeof path, "%s/log", dir);
    put_header();
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, log_bytes, log_len), log_len);
    flock(fd, LOCK_EX);
    struct recording *r = recording_open(dir, why);
    assert_non_null(r);
    assert_true(r->under_way);
    recording_close(r);
    close(fd);
    r = recording_open(path, why); /* the log itself */
    assert_non_null(r);
    assert_false(r->under_way);
    recording_close(r);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_null(recording_open(dir, why));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0700), 0);
    assert_null(recording_open(dir, why)); /* and does not wait for a writer */
    unlink(path);
    rmdir(dir);
    assert_null(recording_open(dir, why));
}

/* ---- JSON ---- */

static bool parses(const char *text) {
    struct json v;
    return json_parse(text, strlen(text), &v);
}

static void test_json_syntax(void **state) {
    static const char *const good[] = {
        "{}",           " [ ] ", "[1, -2.5e+3, 0]", "\"\\u00e9\\n\"", "{\"a\": {\"b\": [true, false, null]}}",
        "\"\xc3\xa9\"", "0"};
    static const char *const bad[] = {
        "",   " ",   "{",  "[1,]",    "[1 2]",       "{\"a\"}", "{\"a\":}", "{a: 1}", "01",       "-",
        "1.", "1e",  "\"", "\"\\x\"", "\"\\u12g4\"", "\"\n\"",  "tru",      "[1] 2",  "\"\xff\"", "\"\xed\xa0\x80\"",
        "+1", "\"\\"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(parses(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(parses(bad[i]));
    char deep[64];
    memset(deep, '[', 32);
    memset(deep + 32, ']', 32);
    struct json v;
    assert_false(json_parse(deep, 64, &v));
}

static void test_json_values(void **state) {
    static const char text[] = "{\"n\": 18446744073709551615, \"i\": -5, \"f\": 1.5, \"big\": 18446744073709551616, "
                               "\"s\": \"a\\u00e9\\ud83d\\ude00\\udcff\", \"l\": [\"x\", {\"n\": 1}, [2, 3]]}";
    struct json top, list, v;
    uint64_t u = 7;
    int64_t i = 7;
    char s[32];
    assert_true(json_parse(text, sizeof text - 1, &top));
    assert_true(json_member_u64(top, "n", &u) && u == UINT64_MAX);
    assert_true(json_member_i64(top, "i", &i) && i == -5);
    assert_false(json_member_u64(top, "i", &u));
    assert_false(json_member_u64(top, "f", &u));
    assert_false(json_member_u64(top, "big", &u));
    assert_false(json_member_u64(top, "none", &u));
    assert_int_equal(u, UINT64_MAX);
    assert_true(json_member_string(top, "s", s, sizeof s));
    assert_string_equal(s, "a\xc3\xa9\xf0\x9f\x98\x80\xff");
    assert_true(json_member(top, "s", &v));
    assert_int_equal(json_string(v, s, 3), 8);
    assert_string_equal(s, "a\xc3");
    assert_true(json_member(top, "l", &list));
    v = json_first(list);
    assert_int_equal(json_string(v, s, sizeof s), 1);
    v = json_next(v);
    assert_true(json_member_u64(v, "n", &u) && u == 1);
    v = json_next(v);
    assert_true(json_u64(json_next(json_first(v)), &u) && u == 3);
    assert_false(json_is(json_next(v)));
    assert_false(json_is(json_next(json_next(json_first(v)))));
}

/* Whatever bytes a string holds, they come back. */
static void test_json_write(void **state) {
    char bytes[256], *text = NULL, back[512];
    size_t n;
    for (int i = 0; i < 256; i++) bytes[i] = (char)(255 - i);
    FILE *f = open_memstream(&text, &n);
    json_write_string(f, bytes, 255); /* all but the terminator */
    fclose(f);
    struct json v;
    assert_true(json_parse(text, n, &v));
    assert_int_equal(json_string(v, back, sizeof back), 255);
    assert_memory_equal(back, bytes, 255);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),     cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_verify_cuts),
        cmocka_unit_test(test_event_check), cmocka_unit_test(test_summary),      cmocka_unit_test(test_missing_words),
        cmocka_unit_test(test_files),       cmocka_unit_test(test_json_syntax),  cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_json_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

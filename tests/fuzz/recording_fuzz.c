// Hostile recordings: whatever the bytes are, reading them ends with events or with a text, never with a crash or a read out
// of bounds. Checksums would keep a fuzzer out, so most inputs are mended first: the fuzzer decides what is inside of frames.
//   coverage-guided:  clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/recording_fuzz.c
//                     src/log/{frame,json,recording,event,summary,place,event_text,print_text}.c src/cli/print.c -lzstd -lxxhash
//                     then: a.out CORPUS tests/golden
//   smoke test:       recording_fuzz SECONDS [SEED]
// link: src/log/frame.c src/log/json.c src/log/recording.c src/log/event.c src/log/summary.c src/log/place.c src/log/event_text.c src/log/print_text.c src/cli/print.c
// libs: -lzstd -lxxhash
// cflags: -DSTANDALONE -fsanitize=address,undefined -fno-sanitize-recover=undefined
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "log/event_text.h"
#include "log/summary.h"
#include "mend.h"

#define MUST(x)                                                         \
    do {                                                                \
        if (!(x)) {                                                     \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #x); \
            abort();                                                    \
        }                                                               \
    } while (0)

void complain(const char *format, ...) {} /* print.c's */

static FILE *nowhere;

static void read_streams(const struct recording *r) {
    for (size_t i = 0; i < r->n_streams; i++) {
        const struct stream_ref *s = &r->streams[i];
        struct event_reader reader;
        const struct event *e;
        enum read_result got;
        uint64_t bytes = 0;
        MUST(recording_stream(r, s->number) == s && s->n_frames);
        MUST(event_reader_open(&reader, r, s));
        while ((got = event_reader_next(&reader, &e)) == READ_GOT) {
            MUST(reader.position == bytes);
            bytes += e->size;
            event_print(nowhere, e);
            event_print_json(nowhere, e);
        }
        if (got == READ_DAMAGED)
            MUST(reader.why[0] && event_reader_next(&reader, &e) == READ_NONE);
        else
            MUST(bytes == s->raw_len);
        event_reader_close(&reader);

        struct stream_reader raw;
        MUST(!stream_reader_open(&raw, r, s, s->raw_len + 1));
        MUST(stream_reader_open(&raw, r, s, s->raw_len / 2));
        if (stream_reader_next(&raw) == READ_GOT)
            MUST(raw.position <= s->raw_len / 2 && raw.position + raw.raw_len > s->raw_len / 2);
        stream_reader_close(&raw);
    }
}

static void summarise(const struct recording *r) {
    struct summary *s = summary_of(r);
    MUST(s && s->n_streams == r->n_streams);
    for (size_t i = 0; i < s->n_streams; i++) {
        const struct stream_facts *f = &s->streams[i];
        MUST(summary_stream(s, f->number) == f && f->interleaving_stored <= f->stored_len);
        print_words(nowhere, f->words, f->words_len);
        print_words_json(nowhere, f->words, f->words_len);
        print_text(nowhere, f->exe, strlen(f->exe));
    }
    summary_free(s);
}

static void read_texts(const struct recording *r) {
    char text[64];
    uint64_t number;
    print_command(nowhere, r);
    json_member_u64(r->header, "began_ns", &number);
    json_member_string(r->header, "host", text, sizeof text);
    for (struct json v = json_first(r->header); json_is(v); v = json_next(v)) json_string(v, text, sizeof text);
    recording_cut_text(r, text, sizeof text);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n) {
    char why[WHY_MAX];
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    if (n < 1) return 0;
    uint8_t *bytes = malloc(n);
    memcpy(bytes, input + 1, n - 1);
    if (!(input[0] & 1)) mend(bytes, n - 1);
    struct recording *r = recording_from_memory(bytes, n - 1, why);
    if (r) {
        read_texts(r);
        if (input[0] & 2) {
            bool whole = recording_verify(r);
            MUST(whole == (r->cut == r->size));
        }
        read_streams(r);
        summarise(r);
        recording_close(r);
    } else {
        MUST(why[0]);
    }
    struct json v;
    if (json_parse((char *)bytes, n - 1, &v)) MUST(v.at >= (char *)bytes && v.end <= (char *)bytes + n - 1);
    free(bytes);
    return 0;
}

#ifdef STANDALONE
#include "random.h"

/* ---- smoke test: golden recordings with some bytes changed ---- */

struct seed {
    uint8_t *bytes;
    size_t n;
};

static size_t load_seeds(const char *folder, struct seed *seeds, size_t max) {
    size_t count = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && count < max && (e = readdir(d));) {
        char path[8192];
        size_t len = strlen(e->d_name);
        if (len < 4 || strcmp(e->d_name + len - 4, ".log")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *f = fopen(path, "rb");
        uint8_t *bytes = malloc(1 << 20);
        size_t n = f ? fread(bytes, 1, 1 << 20, f) : 0;
        if (f) fclose(f);
        seeds[count++] = (struct seed){bytes, n};
    }
    if (d) closedir(d);
    return count;
}

/* Payloads of a seed without compression, so that a changed byte is a changed event. */
static size_t unpack_frames(const struct seed *s, uint8_t *out, size_t room) {
    size_t at = 0, n = 0;
    struct frame_head h;
    while (at < s->n && frame_check_head(s->bytes + at, s->n - at, &h) == FRAME_OK && h.len <= s->n - at - sizeof h) {
        if (n + frame_room(h.raw_len) > room) break;
        uint8_t *raw = malloc(h.raw_len);
        if (frame_decode(&h, s->bytes + at + sizeof h, raw) == FRAME_OK)
            n += frame_encode(NULL, 0, h.kind, h.stream, h.position, raw, h.raw_len, out + n);
        free(raw);
        at += sizeof h + h.len;
    }
    return n;
}

static void change(uint8_t *bytes, size_t n) {
    static const uint64_t odd[] = {0,     1,          7,          8,          23,    24,     0xffff,
                                   65536, 0x7fffffff, 0xffffffff, 1ull << 63, ~0ull, 4 << 20};
    for (uint64_t k = 1 + next() % 4; k-- && n;) {
        size_t at = next() % n;
        uint64_t value = odd[next() % (sizeof odd / sizeof *odd)];
        size_t width = 1ul << next() % 4;
        if (next() % 2) at &= ~7ul;
        if (next() % 3 == 0)
            bytes[at] = (uint8_t)next();
        else
            memcpy(bytes + at, &value, width < n - at ? width : n - at);
    }
}

int main(int argc, char **argv) {
    static struct seed seeds[256];
    static uint8_t input[1 << 20];
    const char *tests = getenv("TESTS");
    char folder[4096];
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    random_state = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 2654435761u;
    random_state |= 1;
    printf("seed %#lx\n", random_state);
    fflush(stdout);
    snprintf(folder, sizeof folder, "%s/golden", tests ? tests : "tests");
    size_t count = load_seeds(folder, seeds, 256);
    MUST(count > 0);
    time_t end = time(NULL) + (time_t)seconds;
    unsigned long rounds = 0;
    for (; time(NULL) < end; rounds++) {
        const struct seed *s = &seeds[next() % count];
        size_t n = next() % 2 ? unpack_frames(s, input + 1, sizeof input - 1) : 0;
        if (!n) memcpy(input + 1, s->bytes, n = s->n < sizeof input ? s->n : sizeof input - 1);
        input[0] = (uint8_t)next() & (next() % 4 ? 2 : 3);
        change(input + 1, n);
        if (next() % 8 == 0) n = next() % (n + 1);
        LLVMFuzzerTestOneInput(input, n + 1);
    }
    printf("%lu recordings\n", rounds);
    for (size_t i = 0; i < count; i++) free(seeds[i].bytes);
    if (nowhere) fclose(nowhere);
    return 0;
}
#endif

// Hostile packed recordings: unpacking ends with a whole recording or with a text; objects are only kept under the name that
// their bytes have, and nothing is written beyond the limit.
//   coverage-guided:  clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/pack_fuzz.c
//                     src/log/{frame,json,recording,event,place,pack}.c -lzstd -lxxhash
//   smoke test:       pack_fuzz SECONDS [SEED]
// link: src/log/frame.c src/log/json.c src/log/recording.c src/log/event.c src/log/place.c src/log/pack.c
// libs: -lzstd -lxxhash
// cflags: -DSTANDALONE -fsanitize=address,undefined -fno-sanitize-recover=undefined
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log/pack.h"
#include "mend.h"

#define LIMIT (16ul << 20)
#define MUST(x)                                                         \
    do {                                                                \
        if (!(x)) {                                                     \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #x); \
            abort();                                                    \
        }                                                               \
    } while (0)

static uint64_t kept, asked;

static uint64_t size_of(int fd) {
    struct stat st;
    MUST(fstat(fd, &st) == 0);
    return (uint64_t)st.st_size;
}

static int begin_object(void *arg, struct object_name name, uint64_t size, char *why) {
    asked = size;
    if (name.lo % 4 == 0) return -2;
    return memfd_create("object", MFD_CLOEXEC);
}

static bool finish_object(void *arg, struct object_name name, int fd, bool ok, char *why) {
    MUST(size_of(fd) <= asked && asked <= LIMIT);
    if (ok) {
        uint8_t *bytes = malloc(asked + 1);
        MUST(pread(fd, bytes, asked, 0) == (ssize_t)asked);
        XXH128_hash_t h = XXH3_128bits(bytes, asked);
        MUST(h.low64 == name.lo && h.high64 == name.hi);
        free(bytes);
        kept++;
    }
    close(fd);
    return true;
}

static int begin_file(void *arg, const char *name, char *why) {
    MUST(name[0] && name[0] != '.' && !strchr(name, '/'));
    return memfd_create("file", MFD_CLOEXEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n) {
    char why[WHY_MAX] = "";
    struct pack_facts facts;
    if (n < 1) return 0;
    uint8_t *bytes = malloc(n);
    memcpy(bytes, input + 1, n - 1);
    if (!(input[0] & 1)) mend(bytes, n - 1);
    int fd = memfd_create("packed", MFD_CLOEXEC), log = memfd_create("log", MFD_CLOEXEC);
    MUST(fd >= 0 && log >= 0 && write(fd, bytes, n - 1) == (ssize_t)(n - 1) && lseek(fd, 0, SEEK_SET) == 0);
    struct unpacker u = {.log = log,
                         .begin_object = begin_object,
                         .finish_object = finish_object,
                         .begin_file = begin_file,
                         .limit = LIMIT};
    if (pack_read_header(fd, &facts, why) && pack_read(fd, &facts, &u, why)) {
        MUST(size_of(log) == facts.log_size && facts.log_size <= LIMIT);
        MUST(!facts.name[0] || pack_name_is_fine(facts.name));
    } else {
        MUST(why[0] && size_of(log) <= LIMIT);
    }
    close(fd);
    close(log);
    free(bytes);
    return 0;
}

#ifdef STANDALONE
#include "random.h"

/* ---- smoke test: a packed recording with some bytes changed ---- */

static const char contents[] = "contents of a file, contents of a file, contents of a file";

static bool find(void *arg, struct object_name name, char *path, size_t cap) {
    snprintf(path, cap, "%s", (const char *)arg);
    return true;
}

/* A packed recording with one object. */
static size_t make_pack(uint8_t *to, size_t room) {
    char dir[] = "/tmp/reprise-fuzz-XXXXXX", object[64], log[64], why[WHY_MAX];
    uint8_t bytes[4096];
    size_t n = frame_encode(NULL, 0, FRAME_HEADER, 0, 0, "{\"command\": [\"a\"]}", 18, bytes);
    XXH128_hash_t h = XXH3_128bits(contents, sizeof contents);
    struct frame_object o = {.name = {h.low64, h.high64}, .size = sizeof contents};
    n += frame_encode(NULL, 0, FRAME_OBJECT, 0, 0, &o, sizeof o, bytes + n);
    n += frame_encode(NULL, 0, FRAME_END, 0, 0, "{}", 2, bytes + n);
    MUST(mkdtemp(dir));
    snprintf(object, sizeof object, "%s/object", dir);
    snprintf(log, sizeof log, "%s/log", dir);
    int fd = open(object, O_WRONLY | O_CREAT, 0600), log_fd = open(log, O_WRONLY | O_CREAT, 0600);
    MUST(write(fd, contents, sizeof contents) == sizeof contents && write(log_fd, bytes, n) == (ssize_t)n);
    close(fd);
    close(log_fd);
    char *names[] = {"ckpt-0.data"}, extra[64];
    struct pack_files files = {names, 1};
    snprintf(extra, sizeof extra, "%s/%s", dir, names[0]);
    fd = open(extra, O_WRONLY | O_CREAT, 0600);
    MUST(fd >= 0 && write(fd, contents, sizeof contents) == sizeof contents);
    close(fd);
    struct recording *r = recording_open(dir, why);
    int pack = memfd_create("packed", MFD_CLOEXEC);
    MUST(r && pack_write(r, "name-0", &files, find, object, pack, why));
    ssize_t got = pread(pack, to, room, 0);
    MUST(got > 0);
    close(pack);
    recording_close(r);
    unlink(extra);
    unlink(object);
    unlink(log);
    rmdir(dir);
    return (size_t)got;
}

int main(int argc, char **argv) {
    static uint8_t whole[65536], input[65536];
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    random_state = (argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 2654435761u) | 1;
    printf("seed %#lx\n", random_state);
    fflush(stdout);
    size_t n = make_pack(whole + 1, sizeof whole - 1);
    if (argc > 3) { /* a seed for the coverage-guided one */
        FILE *f = fopen(argv[3], "wb");
        MUST(f && fwrite(whole, 1, n + 1, f) == n + 1);
        fclose(f);
    }
    LLVMFuzzerTestOneInput(whole, n + 1);
    MUST(kept == 1 || XXH3_128bits(contents, sizeof contents).low64 % 4 == 0);
    time_t end = time(NULL) + (time_t)seconds;
    unsigned long rounds = 0;
    for (; time(NULL) < end; rounds++) {
        memcpy(input, whole, n + 1);
        input[0] = (uint8_t)(next() % 8 == 0);
        for (uint64_t k = 1 + next() % 3; k--;) input[1 + next() % n] = (uint8_t)(next() % 2 ? next() : 0);
        LLVMFuzzerTestOneInput(input, next() % 8 ? n + 1 : next() % n + 1);
    }
    printf("%lu packed recordings\n", rounds);
    return 0;
}
#endif

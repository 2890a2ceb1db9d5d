// Hostile checkpoint stores: opening one and reading all of it ends with pages or with a text, and nothing is read outside of
// its files.
//   coverage-guided:  clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/ckpt_fuzz.c
//                     src/ckpt/{files,store,write,merge,meta,slots}.c -lxxhash
//   smoke test:       ckpt_fuzz SECONDS [SEED [FILE]]    FILE: a seed for the coverage-guided one
// An input is a byte of flags, then pieces: a byte that says which file, two bytes of length, contents.
// link: src/ckpt/files.c src/ckpt/store.c src/ckpt/write.c src/ckpt/merge.c src/ckpt/meta.c src/ckpt/slots.c
// libs: -lxxhash
// cflags: -DSTANDALONE -fsanitize=address,undefined -fno-sanitize-recover=undefined
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "ckpt/format.h"
#include "ckpt/store.h"

#define STREAM 7
#define MUST(x)                                                         \
    do {                                                                \
        if (!(x)) {                                                     \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #x); \
            abort();                                                    \
        }                                                               \
    } while (0)

static const char *const names[] = {"ckpt-7.data", "ckpt-7.0-3", "ckpt-7.4-5", "ckpt-7.6-6", "ckpt-7.7-7"};
#define NAMES (sizeof names / sizeof *names)
static char dir[64];

static void enter_dir(void) {
    if (dir[0]) return;
    snprintf(dir, sizeof dir, "%s/ckpt-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    MUST(mkdtemp(dir) && chdir(dir) == 0);
}

/* Checksums would keep the fuzzer out. */
static void mend(uint8_t *bytes, size_t n) {
    struct meta_head h;
    if (n < sizeof h) return;
    memcpy(&h, bytes, sizeof h);
    h.magic = META_MAGIC;
    h.version = META_VERSION;
    h.body_hash = XXH3_64bits(bytes + sizeof h, n - sizeof h);
    h.head_hash = XXH3_64bits(&h, offsetof(struct meta_head, head_hash));
    memcpy(bytes, &h, sizeof h);
}

static void put_file(const char *name, const uint8_t *bytes, size_t n) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
}

static uint64_t read_all(const struct ckpt_store *s) {
    uint64_t pages = 0;
    for (size_t i = 0; i < ckpt_count(s); i++) {
        static struct ckpt_restored r;
        struct ckpt_cursor c;
        struct ckpt_info info;
        size_t len;
        uint64_t before = 0;
        char why[256];
        MUST(ckpt_info(s, i, &info) && info.first <= info.last);
        const uint8_t *state = ckpt_state(s, i, &len);
        MUST(XXH3_64bits(state, len) || true); /* all of it can be read */
        size_t k = 0;
        for (ckpt_pages(s, i, &c); k < 10000 && ckpt_next(&c, &r); k++, pages++) {
            MUST((!k || r.address > before) && r.blocks && r.address % CKPT_PAGE == 0);
            before = r.address;
            MUST(ckpt_read(s, i, before, &r, why));
        }
        ckpt_before(s, info.place.event, info.place.ticks);
    }
    return pages;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n) {
    char why[WHY_MAX] = "";
    enter_dir();
    for (size_t i = 0; i < NAMES; i++) unlink(names[i]);
    for (size_t at = 1; n > 0 && at + 3 <= n;) {
        size_t which = input[at] % NAMES, len = (size_t)(input[at + 1] | input[at + 2] << 8);
        at += 3;
        if (len > n - at) len = n - at;
        uint8_t *copy = malloc(len + 1);
        memcpy(copy, input + at, len);
        if (which && !(input[0] & 1)) mend(copy, len);
        put_file(names[which], copy, len);
        free(copy);
        at += len;
    }
    struct ckpt_store *s = ckpt_open(dir, STREAM, why);
    if (s)
        read_all(s);
    else
        MUST(why[0]);
    ckpt_close(s);
    return 0;
}

#ifdef STANDALONE
#include "random.h"

/* ---- smoke test: a store with some bytes changed ---- */

/* Eight checkpoints: levels 2, 1, 0, 0. */
static size_t make_input(uint8_t *to, size_t room) {
    static uint8_t page[CKPT_PAGE];
    char why[WHY_MAX];
    enter_dir();
    struct ckpt_store *s = ckpt_create(dir, STREAM, why);
    MUST(s);
    for (uint64_t k = 0; k < 8; k++) {
        struct ckpt_place place = {.event = k * 3, .ticks = k};
        struct ckpt_range dropped = {(4 + k) * CKPT_PAGE, (5 + k) * CKPT_PAGE};
        MUST(ckpt_begin(s, &place, &dropped, k % 2));
        for (uint64_t i = k; i < k + 3; i++) {
            for (size_t b = 0; b < 4; b++) page[(i * 7 + b) % 64 * 64] = (uint8_t)(k + 1);
            MUST(ckpt_page(s, i * CKPT_PAGE, i % 2 ? CKPT_BASE_FILE : CKPT_BASE_ZERO, page));
        }
        MUST(ckpt_commit(s, "some state", 10));
    }
    MUST(read_all(s) > 4);
    ckpt_close(s);
    size_t n = 1;
    to[0] = 0;
    for (size_t i = 0; i < NAMES; i++) {
        int fd = open(names[i], O_RDONLY);
        MUST(fd >= 0);
        ssize_t len = read(fd, to + n + 3, room - n - 3);
        MUST(len > 0 && len < 65536 && n + 3 + (size_t)len < room);
        close(fd);
        to[n] = (uint8_t)i;
        to[n + 1] = (uint8_t)len;
        to[n + 2] = (uint8_t)(len >> 8);
        n += 3 + (size_t)len;
    }
    return n;
}

int main(int argc, char **argv) {
    static uint8_t whole[262144], input[262144];
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    random_state = (argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 2654435761u) | 1;
    printf("seed %#lx\n", random_state);
    fflush(stdout);
    FILE *seed = argc > 3 ? fopen(argv[3], "wb") : NULL;
    size_t n = make_input(whole, sizeof whole);
    if (seed) {
        MUST(fwrite(whole, 1, n, seed) == n);
        fclose(seed);
    }
    LLVMFuzzerTestOneInput(whole, n);
    time_t end = time(NULL) + (time_t)seconds;
    unsigned long rounds = 0;
    size_t data_end = 4 + (size_t)(whole[2] | whole[3] << 8); /* most changes behind the data, where the structure is */
    for (; time(NULL) < end; rounds++) {
        memcpy(input, whole, n);
        input[0] = (uint8_t)(next() % 8 == 0);
        for (uint64_t k = 1 + next() % 3; k--;) {
            size_t from = next() % 4 ? data_end : 1;
            input[from + next() % (n - from)] = (uint8_t)(next() % 2 ? next() : next() % 2 ? 0xff : 0);
        }
        LLVMFuzzerTestOneInput(input, next() % 8 ? n : next() % n);
    }
    for (size_t i = 0; i < NAMES; i++) unlink(names[i]);
    rmdir(dir);
    printf("%lu stores\n", rounds);
    return 0;
}
#endif

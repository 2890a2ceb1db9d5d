#include "ckpt/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define RUN_SLOTS 16384u /* written at once: 1 MB */
#define TRIM_WORDS 4     /* pieces of 16 KB and more are given back */
#define PIECE_BYTES 65536u
#define PIECES 256u

bool slots_create(struct slots *s, int fd) {
    *s = (struct slots){.fd = fd, .run = malloc(RUN_SLOTS * CKPT_BLOCK)};
    return s->run != NULL;
}

bool slots_open(struct slots *s, int fd) {
    struct stat st;
    *s = (struct slots){.fd = fd};
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) return false;
    uint64_t n = (uint64_t)st.st_size / CKPT_BLOCK;
    s->n = n < SLOTS_MAX ? n : SLOTS_MAX;
    return true;
}

void slots_close(struct slots *s) {
    if (s->view) munmap((void *)s->view, s->view_size);
    free(s->run);
    free(s->map);
    free(s->pieces);
    if (s->fd >= 0) close(s->fd);
    *s = (struct slots){.fd = -1};
}

uint32_t slots_check(const void *block) { return (uint32_t)XXH3_64bits(block, CKPT_BLOCK); }

/* ---- the free list: a map, searched from the lowest on, so that what is saved together lies together ---- */

static bool more_map(struct slots *s) {
    size_t more = s->map_words ? s->map_words * 2 : 1024;
    uint64_t *bigger = reallocarray(s->map, more, 8);
    if (!bigger) return false;
    memset(bigger + s->map_words, 0, (more - s->map_words) * 8);
    s->map = bigger;
    s->map_words = more;
    return true;
}

static uint32_t find_free(struct slots *s) {
    for (size_t w = s->hint / 64;; w++) {
        if (w == s->map_words && !more_map(s)) return SLOTS_NONE;
        if (s->map[w] == UINT64_MAX) continue;
        uint64_t slot = w * 64 + (unsigned)__builtin_ctzll(~s->map[w]);
        if (slot >= SLOTS_MAX) return errno = EFBIG, SLOTS_NONE;
        return (uint32_t)slot;
    }
}

void slots_give_back(struct slots *s, uint32_t slot) {
    s->map[slot / 64] &= ~(1ull << slot % 64);
    s->used--;
    if (slot < s->hint) s->hint = slot;
}

static bool is_word_free(const struct slots *s, size_t w) { return w < s->map_words && !s->map[w]; }

/* Best effort: where holes cannot be made, the space stays with the file. */
static void punch(const struct slots *s, size_t from, size_t to) {
    off_t at = (off_t)(from * 64 * CKPT_BLOCK), len = (off_t)((to - from) * 64 * CKPT_BLOCK);
    fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len);
}

void slots_trim(struct slots *s) {
    size_t words = (s->n + 63) / 64;
    while (words && is_word_free(s, words - 1)) words--;
    if (words * 64 < s->n && ftruncate(s->fd, (off_t)(words * 64 * CKPT_BLOCK)) == 0) s->n = words * 64;
    for (size_t w = s->hint / 64; w < words;) {
        size_t from = w;
        while (w < words && is_word_free(s, w)) w++;
        if (w - from >= TRIM_WORDS) punch(s, from, w);
        w += w == from;
    }
}

/* ---- writing ---- */

/* What was read may not be what the file has from now on. */
static void forget_pieces(struct slots *s) {
    free(s->pieces);
    s->pieces = NULL;
}

bool slots_flush(struct slots *s) {
    if (s->run_n) forget_pieces(s);
    size_t n = (size_t)s->run_n * CKPT_BLOCK, done = 0;
    off_t at = (off_t)s->run_first * CKPT_BLOCK;
    while (done < n) {
        ssize_t k = pwrite(s->fd, s->run + done, n - done, at + (off_t)done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        done += (size_t)k;
    }
    uint64_t end = (uint64_t)s->run_first + s->run_n;
    if (s->run_n && end > s->n) s->n = end;
    s->run_n = 0;
    return true;
}

uint32_t slots_put(struct slots *s, const void *block) {
    uint32_t slot = find_free(s);
    if (slot == SLOTS_NONE) return slot;
    bool in_row = s->run_n && slot == s->run_first + s->run_n && s->run_n < RUN_SLOTS;
    if (!in_row) {
        if (!slots_flush(s)) return SLOTS_NONE;
        s->run_first = slot;
    }
    memcpy(s->run + (size_t)s->run_n++ * CKPT_BLOCK, block, CKPT_BLOCK);
    s->map[slot / 64] |= 1ull << slot % 64;
    s->used++;
    s->hint = (uint64_t)slot + 1;
    return slot;
}

/* ---- reading ---- */

bool slots_look(struct slots *s) {
    size_t want = s->n * CKPT_BLOCK;
    if (want <= s->view_size) return true;
    want += want / 2; /* the file grows into it */
    void *p = s->view ? mremap((void *)s->view, s->view_size, want, MREMAP_MAYMOVE)
                      : mmap(NULL, want, PROT_READ, MAP_SHARED, s->fd, 0);
    if (p == MAP_FAILED) return false;
    s->view = p;
    s->view_size = want;
    return true;
}

struct slots_piece {
    uint64_t number; /* which piece of the file it is, plus 1; 0: none */
    size_t n;        /* bytes of it */
    uint8_t bytes[PIECE_BYTES];
};

static bool read_piece(const struct slots *s, struct slots_piece *p, uint64_t number) {
    p->number = 0;
    for (p->n = 0; p->n < sizeof p->bytes;) {
        ssize_t k = pread(s->fd, p->bytes + p->n, sizeof p->bytes - p->n, (off_t)(number * PIECE_BYTES + p->n));
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return false;
        if (k == 0) break;
        p->n += (size_t)k;
    }
    p->number = number + 1;
    return true;
}

bool slots_read(struct slots *s, uint32_t slot, size_t n, void *to) {
    if (slot >= s->n || n > s->n - slot) return false;
    if (!s->pieces && !(s->pieces = calloc(PIECES, sizeof *s->pieces))) return false;
    uint8_t *out = to;
    for (size_t left = n * CKPT_BLOCK, at = (size_t)slot * CKPT_BLOCK; left;) {
        uint64_t number = at / PIECE_BYTES, from = at % PIECE_BYTES;
        struct slots_piece *p = &s->pieces[number % PIECES];
        size_t k = PIECE_BYTES - from < left ? PIECE_BYTES - from : left;
        if (p->number != number + 1 && !read_piece(s, p, number)) return false;
        if (from + k > p->n) return false;
        memcpy(out, p->bytes + from, k);
        out += k;
        at += k;
        left -= k;
    }
    return true;
}

/* Store: see store.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "controller/complain.h"
#include "controller/hash_zeros.h"
#include "controller/store.h"
#include "controller/where.h"
#include "log/place.h"

#define CHUNK (1u << 20)
#define HOLE_CHUNK (1ull << 34) /* hashed in about 0.1 s */
#define SIZE_MOST (1ull << 42)  /* hashing the holes of larger files takes longer than anybody waits */
#define INDEX_READ (512u << 10) /* bytes of the index that are looked at: its end */
#define INDEX_MAX (2u << 20)    /* a longer one is cut */
#define YOUNG_NS 2000000000ull
#define NAME_TRIES 1000

bool store_open(struct store *s, const char *path) {
    struct stat st;
    s->dir = -1;
    s->min_free = 0;
    s->gives_up = false;
    if (where_make_dirs(path)) s->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->dir < 0 || fstat(s->dir, &st) < 0) {
        complain("%s: cannot keep mapped files there: %s", path, strerror(errno));
        return false;
    }
    if (st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH))) return true;
    complain("%s: cannot keep mapped files there: others may write to it", path);
    return false;
}

bool store_has(const struct store *s, struct object_name name, uint64_t size) {
    char path[OBJECT_FILE];
    struct stat st;
    object_file(name, path);
    return fstatat(s->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
}

/* ---- copying in ---- */

static bool is_zero(const uint8_t *p, size_t n) { return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0); }

static int write_all(int fd, const uint8_t *p, size_t n, off_t at) {
    while (n) {
        ssize_t done = pwrite(fd, p, n, at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : EIO;
        p += done, n -= (size_t)done, at += done;
    }
    return 0;
}

struct source {
    int fd;
    bool is_ours; /* its position may be changed */
};

/* Where data begins at or behind `at`: holes are not read, they may be much larger than what there is. */
static off_t data_from(struct source s, off_t at) {
    if (!s.is_ours) return at;
    off_t data = lseek(s.fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) data = lseek(s.fd, 0, SEEK_END);
    return data > at ? data : at;
}

static int hash_hole(const struct store *s, XXH3_state_t *hash, uint64_t n) {
    while (n && !__atomic_load_n(&s->gives_up, __ATOMIC_RELAXED)) {
        uint64_t piece = n < HOLE_CHUNK ? n : HOLE_CHUNK;
        hash_zeros(hash, piece);
        n -= piece;
    }
    return __atomic_load_n(&s->gives_up, __ATOMIC_RELAXED) ? ECANCELED : 0;
}

/* Hashes the whole of `from` and, if `to` is not -1, copies it there; holes stay holes. */
static int hash_and_copy(const struct store *s, struct source from, int to, struct object_name *name, uint64_t *size) {
    XXH3_state_t *hash = XXH3_createState();
    uint8_t *buf = aligned_alloc(4096, CHUNK);
    int err = hash && buf ? 0 : ENOMEM;
    off_t at = 0;
    if (!err) XXH3_128bits_reset(hash);
    while (!err) {
        off_t data = data_from(from, at);
        if ((err = hash_hole(s, hash, (uint64_t)(data - at)))) break;
        at = data;
        ssize_t n = pread(from.fd, buf, CHUNK, at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) err = errno;
        if (n <= 0) break;
        XXH3_128bits_update(hash, buf, (size_t)n);
        if (to >= 0 && !is_zero(buf, (size_t)n)) err = write_all(to, buf, (size_t)n, at);
        at += n;
    }
    if (!err && to >= 0 && ftruncate(to, at) < 0) err = errno;
    if (!err) {
        XXH128_hash_t h = XXH3_128bits_digest(hash);
        *name = (struct object_name){.lo = h.low64, .hi = h.high64};
        *size = (uint64_t)at;
    }
    free(buf);
    XXH3_freeState(hash);
    return err;
}

/* The name is that of the bytes that arrived: a file that changes meanwhile cannot make a wrong object. */
static int fill_object(const struct store *s, struct source from, int to, struct object_name *name, uint64_t *size) {
    if (ioctl(to, FICLONE, from.fd) == 0) return hash_and_copy(s, (struct source){to, true}, -1, name, size);
    return hash_and_copy(s, from, to, name, size);
}

static bool has_space(const struct store *s, const struct stat *st) {
    struct statvfs v;
    if (fstatvfs(s->dir, &v) < 0) return true;
    return (uint64_t)v.f_bavail * v.f_frsize >= (uint64_t)st->st_blocks * 512 + s->min_free;
}

static int copy_in(struct store *s, struct source from, const struct stat *st, struct object_name *name) {
    static unsigned serial;
    char temp[64], path[OBJECT_FILE], dir[3];
    uint64_t size;
    if (!has_space(s, st)) return ENOSPC;
    int to, tries = 0;
    do { /* in another PID namespace there may be somebody of the same number, or there was one that was killed */
        snprintf(temp, sizeof temp, ".new-%d-%u", (int)getpid(), __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED));
        to = openat(s->dir, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    } while (to < 0 && errno == EEXIST && ++tries < NAME_TRIES);
    if (to < 0) return errno;
    int err = fill_object(s, from, to, name, &size);
    close(to);
    if (!err) {
        object_file(*name, path);
        memcpy(dir, path, 2);
        dir[2] = '\0';
        if (mkdirat(s->dir, dir, 0700) < 0 && errno != EEXIST) err = errno;
        if (!err && renameat(s->dir, temp, s->dir, path) < 0) err = errno;
    }
    if (err) unlinkat(s->dir, temp, 0);
    return err;
}

/* The program's descriptor may be one that cannot be read (O_DIRECT, O_WRONLY), and its position is the program's. */
static int open_again(int fd) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return open(self, O_RDONLY | O_CLOEXEC);
}

static bool is_sparse(const struct stat *st) { return (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size / 2; }

int store_keep(struct store *s, int fd, struct object_name *name, struct stat *st) {
    uint64_t size;
    if (fstat(fd, st) < 0) return errno;
    if (!S_ISREG(st->st_mode)) return ENODEV;
    if ((uint64_t)st->st_size > SIZE_MOST) return EFBIG;
    int own = open_again(fd);
    struct source from = {own >= 0 ? own : fd, own >= 0};
    /* hashing what is mostly holes takes longer than copying the rest */
    int err = is_sparse(st) ? 0 : hash_and_copy(s, from, -1, name, &size);
    if (!err && (is_sparse(st) || !store_has(s, *name, size))) err = copy_in(s, from, st, name);
    if (own >= 0) close(own);
    return err;
}

/* ---- index ---- */

static uint64_t ns(struct timespec t) { return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec; }

struct known_file known_of(int fd, const struct stat *st, struct object_name name) {
    char self[64], path[PATH_MAX];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(self, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = '\0';
    return (struct known_file){.dev = st->st_dev,
                               .ino = st->st_ino,
                               .size = (uint64_t)st->st_size,
                               .mtime_ns = ns(st->st_mtim),
                               .ctime_ns = ns(st->st_ctim),
                               .name = name,
                               .mode = st->st_mode,
                               .path = strdup(path)};
}

void store_remember(struct store *s, const struct known_file *f) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (f->ctime_ns + YOUNG_NS > ns(now) || f->mtime_ns + YOUNG_NS > ns(now)) return;
    if (!f->path || strchr(f->path, '\n')) return;
    char line[PATH_MAX + 256];
    int n = snprintf(line, sizeof line, "%lx %lx %lx %lx %lx %x %016lx%016lx %s\n", f->dev, f->ino, f->size,
                     f->mtime_ns, f->ctime_ns, f->mode, f->name.hi, f->name.lo, f->path);
    if (n < 0 || (size_t)n >= sizeof line) return;
    int fd = openat(s->dir, "index", O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0) return;
    if (write(fd, line, (size_t)n) < 0) {} /* a hint that is not there */
    close(fd);
}

static bool parse_line(char *line, struct known_file *f) {
    uint64_t v[6];
    char *p = line;
    for (int i = 0; i < 6; i++) {
        char *end;
        v[i] = strtoull(p, &end, 16);
        if (end == p || *end != ' ') return false;
        p = end + 1;
    }
    if (strspn(p, "0123456789abcdef") != 32 || p[32] != ' ') return false;
    char half[17] = {0};
    memcpy(half, p, 16);
    *f = (struct known_file){v[0], v[1], v[2], v[3], v[4], {0, strtoull(half, NULL, 16)}, (uint32_t)v[5], p + 33};
    f->name.lo = strtoull(p + 16, NULL, 16);
    return true;
}

/* An index that grew too long keeps its end. Lines that others add at this moment are lost: they are hints. */
static void cut_index(struct store *s, const char *tail, size_t n) {
    char temp[64];
    snprintf(temp, sizeof temp, ".index-%d", (int)getpid());
    int fd = openat(s->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return;
    int err = write_all(fd, (const uint8_t *)tail, n, 0);
    close(fd);
    if (err || renameat(s->dir, temp, s->dir, "index") < 0) unlinkat(s->dir, temp, 0);
}

/* The end of the index, from the start of a line on. */
static char *read_index(struct store *s, size_t *len) {
    int fd = openat(s->dir, "index", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        off_t from = st.st_size > INDEX_READ ? st.st_size - INDEX_READ : 0;
        text = malloc((size_t)(st.st_size - from) + 1);
        ssize_t n = text ? pread(fd, text, (size_t)(st.st_size - from), from) : -1;
        char *line = n > 0 && from ? memchr(text, '\n', (size_t)n) : NULL;
        if (n < 0 || (from && !line)) n = 0;
        if (line) {
            n -= line + 1 - text;
            memmove(text, line + 1, (size_t)n);
        }
        *len = (size_t)n;
        if (text) text[n] = '\0';
        if (st.st_size > INDEX_MAX && n > 0) cut_index(s, text, *len);
    }
    if (fd >= 0) close(fd);
    return text;
}

size_t store_recall(struct store *s, struct known_file **files, size_t max) {
    size_t len = 0, count = 0;
    char *text = read_index(s, &len);
    *files = text ? calloc(max, sizeof **files) : NULL;
    while (*files && len && count < max) { /* backwards, line by line */
        text[--len] = '\0';
        const char *before = memrchr(text, '\n', len);
        char *line = before ? (char *)before + 1 : text;
        struct known_file f;
        if (parse_line(line, &f) && store_has(s, f.name, f.size) && (f.path = strdup(f.path))) (*files)[count++] = f;
        len = (size_t)(line - text);
    }
    free(text);
    return count;
}

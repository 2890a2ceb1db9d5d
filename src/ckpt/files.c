/* Files of checkpoint stores: their names, and opening what a sudden death may have left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/store_parts.h"

#define NAME_ROOM 96

/* ---- names ---- */

struct file_name {
    enum { NAME_DATA, NAME_META, NAME_NEW } kind;
    uint64_t stream, first, last;
};

/* Digits without leading zeros. */
static bool read_number(const char **s, uint64_t *out) {
    const char *p = *s;
    uint64_t v = 0;
    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9')) return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v)) return false;
    *s = p;
    *out = v;
    return true;
}

static bool read_name(const char *s, struct file_name *out) {
    *out = (struct file_name){0};
    if (strncmp(s, "ckpt-", 5) != 0) return false;
    s += 5;
    if (!read_number(&s, &out->stream) || *s++ != '.') return false;
    out->kind = strcmp(s, "data") == 0 ? NAME_DATA : strcmp(s, "new") == 0 ? NAME_NEW : NAME_META;
    if (out->kind != NAME_META) return true;
    return read_number(&s, &out->first) && *s++ == '-' && read_number(&s, &out->last) && !*s && out->first <= out->last;
}

bool ckpt_is_file_name(const char *name) {
    struct file_name n;
    return read_name(name, &n) && n.kind != NAME_NEW;
}

static void meta_name(char name[NAME_ROOM], uint64_t stream, uint64_t first, uint64_t last) {
    snprintf(name, NAME_ROOM, "ckpt-%" PRIu64 ".%" PRIu64 "-%" PRIu64, stream, first, last);
}

static void other_name(char name[NAME_ROOM], uint64_t stream, const char *what) {
    snprintf(name, NAME_ROOM, "ckpt-%" PRIu64 ".%s", stream, what);
}

/* ---- metadata being written ---- */

static int temporary_file(void) {
    const char *dir = getenv("TMPDIR");
    if (!dir || dir[0] != '/') dir = "/tmp";
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
    char path[PATH_MAX]; /* a file system without O_TMPFILE */
    snprintf(path, sizeof path, "%s/reprise-XXXXXX", dir);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

int files_new_meta(const struct ckpt_store *s) {
    char name[NAME_ROOM];
    if (s->dir < 0) return temporary_file();
    other_name(name, s->stream, "new");
    return openat(s->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
}

bool files_publish(const struct ckpt_store *s, int fd, uint64_t first, uint64_t last) {
    char from[NAME_ROOM], to[NAME_ROOM];
    if (s->dir < 0) return true;
    other_name(from, s->stream, "new");
    meta_name(to, s->stream, first, last);
    return renameat(s->dir, from, s->dir, to) == 0;
}

void files_remove(const struct ckpt_store *s, uint64_t first, uint64_t last) {
    char name[NAME_ROOM];
    if (s->dir < 0) return;
    meta_name(name, s->stream, first, last);
    unlinkat(s->dir, name, 0);
}

/* ---- what a directory has ---- */

struct found {
    struct file_name *list;
    size_t n, room;
};

/* By stream, then where they begin, the widest first. */
static int by_numbers(const void *a, const void *b) {
    const struct file_name *x = a, *y = b;
    if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->last > y->last ? -1 : x->last < y->last;
}

static bool add_found(struct found *f, const struct file_name *name) {
    if (f->n == f->room) {
        size_t room = f->room ? 2 * f->room : 64;
        struct file_name *bigger = reallocarray(f->list, room, sizeof *bigger);
        if (!bigger) return false;
        f->list = bigger;
        f->room = room;
    }
    f->list[f->n++] = *name;
    return true;
}

/* Takes fd. */
static bool find_files(int fd, struct found *f, char *why) {
    struct file_name name;
    *f = (struct found){0};
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    bool fine = d != NULL;
    const struct dirent *e;
    while (fine && (e = readdir(d)))
        if (read_name(e->d_name, &name)) fine = add_found(f, &name);
    if (!fine) snprintf(why, WHY_MAX, "cannot look for checkpoints: %s", strerror(errno));
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    if (fine && f->n) qsort(f->list, f->n, sizeof *f->list, by_numbers);
    if (!fine) free(f->list);
    return fine;
}

static int open_dir(const char *dir) { return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

bool ckpt_streams(const char *dir, uint64_t **streams, size_t *n, char *why) {
    struct found f;
    *streams = NULL;
    *n = 0;
    if (!find_files(open_dir(dir), &f, why)) return false;
    *streams = calloc(f.n + 1, sizeof **streams);
    for (size_t i = 0; *streams && i < f.n; i++) {
        bool is_new = !*n || (*streams)[*n - 1] != f.list[i].stream;
        if (f.list[i].kind == NAME_META && is_new) (*streams)[(*n)++] = f.list[i].stream;
    }
    free(f.list);
    if (!*streams) snprintf(why, WHY_MAX, "out of memory");
    return *streams != NULL;
}

bool ckpt_files(const char *dir, char ***names, size_t *n, char *why) {
    struct found f;
    *n = 0;
    if (!find_files(open_dir(dir), &f, why)) return false;
    char **list = calloc(f.n + 1, sizeof *list);
    bool fine = list != NULL;
    for (size_t i = 0; fine && i < f.n; i++) {
        char name[NAME_ROOM];
        const struct file_name *x = &f.list[i];
        if (x->kind == NAME_META)
            meta_name(name, x->stream, x->first, x->last);
        else
            other_name(name, x->stream, x->kind == NAME_DATA ? "data" : "new");
        list[i] = strdup(name);
        fine = list[i] != NULL;
        *n += fine;
    }
    free(f.list);
    if (!fine) {
        snprintf(why, WHY_MAX, "out of memory");
        if (list) ckpt_files_free(list, *n);
    }
    *names = list;
    return fine;
}

void ckpt_files_free(char **names, size_t n) {
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

static uint64_t sum_files(const char *dir, bool remove) {
    char **names, why[WHY_MAX];
    size_t n;
    uint64_t sum = 0;
    int fd = open_dir(dir);
    if (fd < 0) return 0;
    if (ckpt_files(dir, &names, &n, why)) {
        for (size_t i = 0; i < n; i++) {
            struct stat st;
            bool is_file = fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
            if (is_file && (!remove || unlinkat(fd, names[i], 0) == 0)) sum += (uint64_t)st.st_blocks * 512;
        }
        ckpt_files_free(names, n);
    }
    close(fd);
    return sum;
}

uint64_t ckpt_disk_size(const char *dir) { return sum_files(dir, false); }
uint64_t ckpt_remove_files(const char *dir) { return sum_files(dir, true); }

/* ---- opening ---- */

static struct ckpt_store *new_store(int dir, uint64_t stream) {
    struct ckpt_store *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->dir = dir;
    s->stream = stream;
    s->slots.fd = -1;
    return s;
}

static struct ckpt_store *refuse(struct ckpt_store *s, int dir, char *why, const char *what) {
    snprintf(why, WHY_MAX, "%s: %s", what, strerror(errno));
    if (s)
        ckpt_close(s);
    else if (dir >= 0)
        close(dir);
    return NULL;
}

static bool remove_old(int dir, uint64_t stream, char *why) {
    char name[NAME_ROOM];
    struct found f;
    if (!find_files(dup(dir), &f, why)) return false;
    for (size_t i = 0; i < f.n; i++) {
        if (f.list[i].stream != stream || f.list[i].kind != NAME_META) continue;
        meta_name(name, stream, f.list[i].first, f.list[i].last);
        unlinkat(dir, name, 0);
    }
    free(f.list);
    return true;
}

struct ckpt_store *ckpt_create(const char *path, uint64_t stream, char *why) {
    char name[NAME_ROOM];
    int dir = open_dir(path);
    struct ckpt_store *s = dir >= 0 ? new_store(dir, stream) : NULL;
    if (!s) return refuse(s, dir, why, path);
    if (!remove_old(dir, stream, why)) {
        ckpt_close(s);
        return NULL;
    }
    other_name(name, stream, "data");
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    s->writes = true;
    if (fd < 0 || !slots_create(&s->slots, fd)) return refuse(s, dir, why, "cannot write checkpoints");
    return s;
}

struct ckpt_store *ckpt_create_temporary(char *why) {
    struct ckpt_store *s = new_store(-1, 0);
    int fd = s ? temporary_file() : -1;
    if (!s || fd < 0 || !slots_create(&s->slots, fd)) return refuse(s, -1, why, "cannot make a file for checkpoints");
    s->writes = true;
    return s;
}

static bool open_meta(struct ckpt_store *s, const struct file_name *x) {
    char name[NAME_ROOM], why[256];
    struct meta *m = &s->list[s->n];
    meta_name(name, s->stream, x->first, x->last);
    int fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool fine = fd >= 0;
    if (!fine)
        snprintf(why, sizeof why, "cannot be opened: %s", strerror(errno));
    else
        fine = meta_map(m, fd, s->slots.n, why);
    if (fd >= 0) close(fd);
    const struct meta_head *h = m->head;
    if (fine && (h->stream != s->stream || h->first != x->first || h->last != x->last)) {
        fine = false;
        meta_unmap(m);
        snprintf(why, sizeof why, "is not what its name says");
    }
    if (!fine) snprintf(s->damage, sizeof s->damage, "%s %s", name, why);
    s->n += fine;
    return fine;
}

/* Of files that begin with the same number, the widest counts: the others are what it was made of. */
static void open_metas(struct ckpt_store *s, const struct found *f) {
    uint64_t next = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct file_name *x = &f->list[i];
        if (x->stream != s->stream || x->kind != NAME_META || x->first < next) continue;
        if (x->first > next || s->n == STORE_MOST) {
            snprintf(s->damage, sizeof s->damage, "checkpoints of stream %" PRIu64 " from %" PRIu64 " on are missing",
                     s->stream, next);
            return;
        }
        if (!open_meta(s, x)) return;
        next = x->last + 1;
        if (!next) return;
    }
}

static bool has_gone(const struct ckpt_store *s) { return s->damage[0] && strstr(s->damage, "cannot be opened"); }

static struct ckpt_store *open_once(const char *path, uint64_t stream, char *why) {
    char name[NAME_ROOM];
    struct found f;
    int dir = open_dir(path);
    struct ckpt_store *s = dir >= 0 ? new_store(dir, stream) : NULL;
    if (!s) return refuse(s, dir, why, path);
    if (!find_files(dup(dir), &f, why)) {
        ckpt_close(s);
        return NULL;
    }
    other_name(name, stream, "data");
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || !slots_open(&s->slots, fd)) {
        free(f.list);
        return refuse(s, dir, why, "no checkpoints");
    }
    open_metas(s, &f);
    free(f.list);
    return s;
}

/* While the recording is under way, files may be merged as we open them: then once more. */
struct ckpt_store *ckpt_open(const char *path, uint64_t stream, char *why) {
    struct ckpt_store *s = open_once(path, stream, why);
    for (int i = 0; s && has_gone(s) && i < 10; i++) {
        ckpt_close(s);
        s = open_once(path, stream, why);
    }
    if (s && !s->n) {
        snprintf(why, WHY_MAX, "%s", s->damage[0] ? s->damage : "no checkpoints");
        ckpt_close(s);
        return NULL;
    }
    return s;
}

void ckpt_close(struct ckpt_store *s) {
    if (!s) return;
    if (s->is_open) ckpt_abort(s);
    for (size_t i = 0; i < s->n; i++) meta_unmap(&s->list[i]);
    slots_close(&s->slots);
    if (s->dir >= 0) close(s->dir);
    free(s);
}

/* Packed recordings, see pack.h. */
#include "log/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#define CHUNK (1u << 20)
#define LEVEL 3

static bool fail(char *why, const char *what) {
    snprintf(why, WHY_MAX, "%s", what);
    return false;
}

static bool fail_errno(char *why, const char *what) {
    snprintf(why, WHY_MAX, "%s: %s", what, strerror(errno));
    return false;
}

static bool write_all(int fd, const void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t k = write(fd, (const char *)bytes + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) {
            if (k == 0) errno = EIO;
            return false;
        }
        done += (size_t)k;
    }
    return true;
}

/* Bytes that were there: n, or fewer at the end of the file; -1: errno. */
static ssize_t read_full(int fd, void *to, size_t n) {
    size_t done = 0;
    while (done < n) {
        ssize_t k = read(fd, (char *)to + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return -1;
        if (k == 0) break;
        done += (size_t)k;
    }
    return (ssize_t)done;
}

bool pack_name_is_fine(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    size_t n = strlen(name);
    if (n == 0 || n >= PACK_NAME || name[0] == '.' || name[0] == '-' || strspn(name, letters) != n) return false;
    return strcmp(name, "latest") && strcmp(name, "store") && strcmp(name, "lock") && strcmp(name, "elsewhere");
}

/* ---- packing ---- */

struct packer {
    int fd;
    ZSTD_CCtx *context;
    uint8_t *raw, *frame; /* CHUNK, and room for it as a frame */
    char *why;
};

static bool put(struct packer *p, enum frame_kind kind, uint64_t position, const void *raw, size_t n) {
    ZSTD_CCtx *context = kind == PACK_LOG ? NULL : p->context; /* the log is compressed already */
    size_t len = frame_encode(context, LEVEL, kind, 0, position, raw, n, p->frame);
    if (len && write_all(p->fd, p->frame, len)) return true;
    return fail_errno(p->why, "cannot write the packed file");
}

static bool put_log(struct packer *p, const struct recording *r) {
    for (uint64_t at = 0; at < r->cut;) {
        size_t n = r->cut - at < CHUNK ? (size_t)(r->cut - at) : CHUNK;
        ssize_t got = pread(r->fd, p->raw, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(p->why, "cannot read the log");
        if (got == 0) return fail(p->why, "the log got shorter meanwhile");
        if (!put(p, PACK_LOG, at, p->raw, (size_t)got)) return false;
        at += (uint64_t)got;
    }
    return true;
}

/* The bytes of one object, hashed once more on the way. */
static bool put_bytes(struct packer *p, int fd, const struct frame_object *o, const char *path) {
    XXH3_state_t *hash = XXH3_createState();
    uint64_t at = 0;
    ssize_t n = hash ? 0 : -1;
    bool fine = hash != NULL;
    if (hash) XXH3_128bits_reset(hash);
    while (fine && (n = read_full(fd, p->raw, CHUNK)) > 0) {
        XXH3_128bits_update(hash, p->raw, (size_t)n);
        fine = put(p, PACK_DATA, at, p->raw, (size_t)n);
        at += (uint64_t)n;
    }
    if (fine) {
        XXH128_hash_t h = XXH3_128bits_digest(hash);
        fine = n == 0 && at == o->size && h.low64 == o->name.lo && h.high64 == o->name.hi;
        if (!fine) snprintf(p->why, WHY_MAX, "%s is damaged: its bytes are not those that were recorded", path);
    }
    XXH3_freeState(hash);
    return fine;
}

static bool put_object(struct packer *p, const struct object_ref *o, find_object_fn find, void *arg) {
    char path[PATH_MAX];
    int fd =
        find(arg, o->object.name, path, sizeof path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd < 0) {
        snprintf(p->why, WHY_MAX, "the contents of %s are not in the store (%s)", o->path, path);
        return false;
    }
    uint8_t *head = malloc(sizeof o->object + o->object.path_len);
    bool fine = head != NULL;
    if (fine) {
        memcpy(head, &o->object, sizeof o->object);
        memcpy(head + sizeof o->object, o->path, o->object.path_len);
        fine =
            put(p, PACK_OBJECT, 0, head, sizeof o->object + o->object.path_len) && put_bytes(p, fd, &o->object, path);
    }
    free(head);
    close(fd);
    return fine;
}

/* ---- files ---- */

struct opened_file {
    const char *name;
    int fd;
    uint64_t size;
};

static bool put_file(struct packer *p, const struct opened_file *o) {
    uint8_t head[sizeof(struct frame_file) + PACK_NAME];
    struct frame_file f = {.size = o->size, .name_len = (uint32_t)strlen(o->name)};
    memcpy(head, &f, sizeof f);
    memcpy(head + sizeof f, o->name, f.name_len);
    if (!put(p, PACK_FILE, 0, head, sizeof f + f.name_len)) return false;
    for (uint64_t at = 0; at < o->size;) {
        size_t n = o->size - at < CHUNK ? (size_t)(o->size - at) : CHUNK;
        if (read_full(o->fd, p->raw, n) != (ssize_t)n)
            return fail(p->why, "a file of the recording got shorter meanwhile");
        if (!put(p, PACK_DATA, at, p->raw, n)) return false;
        at += n;
    }
    return true;
}

static void close_files(struct opened_file *list, size_t n) {
    for (size_t i = 0; i < n; i++) close(list[i].fd);
    free(list);
}

/* All are opened before the first byte is written: the header says how large they are. */
static struct opened_file *open_files(const struct recording *r, const struct pack_files *files, uint64_t *size,
                                      char *why) {
    size_t n = files ? files->n : 0;
    struct opened_file *list = calloc(n + 1, sizeof *list);
    *size = 0;
    if (!list) return fail(why, "out of memory"), NULL;
    for (size_t i = 0; i < n; i++) {
        char path[PATH_MAX];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", r->dir, files->names[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        bool fine = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && strlen(files->names[i]) < PACK_NAME;
        if (!fine) {
            if (fd >= 0) close(fd);
            fail_errno(why, path);
            close_files(list, i);
            return NULL;
        }
        list[i] = (struct opened_file){files->names[i], fd, (uint64_t)st.st_size};
        *size += list[i].size;
    }
    return list;
}

static int by_name(const void *a, const void *b) {
    const struct object_ref *x = *(struct object_ref *const *)a, *y = *(struct object_ref *const *)b;
    return memcmp(&x->object.name, &y->object.name, sizeof x->object.name);
}

/* The objects of a recording, each once. NULL: out of memory. */
static const struct object_ref **distinct_objects(const struct recording *r, size_t *n, uint64_t *size) {
    const struct object_ref **list = malloc((r->n_objects + 1) * sizeof *list);
    *n = 0;
    *size = 0;
    if (!list) return NULL;
    for (size_t i = 0; i < r->n_objects; i++) list[i] = &r->objects[i];
    qsort(list, r->n_objects, sizeof *list, by_name);
    for (size_t i = 0; i < r->n_objects; i++) {
        if (i && by_name(&list[i - 1], &list[i]) == 0) continue;
        list[(*n)++] = list[i];
    }
    for (size_t i = 0; i < *n; i++) *size += list[i]->object.size;
    return list;
}

struct parts { /* of a recording beside its log */
    const struct object_ref **objects;
    size_t n_objects, n_files;
    uint64_t objects_size, files_size;
    struct opened_file *files;
};

static bool put_header(struct packer *p, const struct recording *r, const char *name, const struct parts *x) {
    char text[512];
    int len =
        snprintf(text, sizeof text,
                 "{\"version\": %d, \"name\": \"%s\", \"log_size\": %lu, \"objects\": %zu, \"objects_size\": %lu, "
                 "\"files\": %zu, \"files_size\": %lu}",
                 LOG_VERSION, pack_name_is_fine(name) ? name : "", r->cut, x->n_objects, x->objects_size, x->n_files,
                 x->files_size);
    return put(p, PACK_HEADER, 0, text, (size_t)len);
}

static bool put_all(struct packer *p, const struct recording *r, const char *name, const struct pack_files *files,
                    find_object_fn find, void *arg) {
    struct parts x = {.n_files = files ? files->n : 0};
    x.objects = distinct_objects(r, &x.n_objects, &x.objects_size);
    if (!x.objects) return fail(p->why, "out of memory");
    x.files = open_files(r, files, &x.files_size, p->why);
    bool fine = x.files && put_header(p, r, name, &x) && put_log(p, r);
    for (size_t i = 0; fine && i < x.n_objects; i++) fine = put_object(p, x.objects[i], find, arg);
    for (size_t i = 0; fine && i < x.n_files; i++) fine = put_file(p, &x.files[i]);
    free(x.objects);
    if (x.files) close_files(x.files, x.n_files);
    return fine && put(p, PACK_END, 0, "{}", 2);
}

bool pack_write(const struct recording *r, const char *name, const struct pack_files *files, find_object_fn find,
                void *arg, int fd, char *why) {
    struct packer p = {
        .fd = fd, .why = why, .context = ZSTD_createCCtx(), .raw = malloc(CHUNK), .frame = malloc(frame_room(CHUNK))};
    bool fine = p.context && p.raw && p.frame ? put_all(&p, r, name, files, find, arg) : fail(why, "out of memory");
    ZSTD_freeCCtx(p.context);
    free(p.raw);
    free(p.frame);
    return fine;
}

/* ---- unpacking ---- */

struct frame_in {
    struct frame_head head;
    uint8_t *payload, *raw;
    size_t payload_room, raw_room;
};

static void free_in(struct frame_in *f) {
    free(f->payload);
    free(f->raw);
}

static bool room_for(uint8_t **bytes, size_t *room, size_t n) {
    if (n <= *room) return true;
    uint8_t *bigger = realloc(*bytes, n);
    if (!bigger) return false;
    *bytes = bigger;
    *room = n;
    return true;
}

/* The next frame. False: why says, also at the end of the file. */
static bool next_frame(int fd, struct frame_in *f, char *why) {
    uint8_t head[sizeof f->head];
    ssize_t n = read_full(fd, head, sizeof head);
    if (n < 0) return fail_errno(why, "cannot read the packed file");
    enum frame_fault fault = frame_check_head(head, (size_t)n, &f->head);
    if (!fault) {
        if (!room_for(&f->payload, &f->payload_room, f->head.len) ||
            !room_for(&f->raw, &f->raw_room, (size_t)f->head.raw_len + 1))
            return fail(why, "out of memory");
        n = read_full(fd, f->payload, f->head.len);
        if (n < 0) return fail_errno(why, "cannot read the packed file");
        fault = (size_t)n < f->head.len ? FRAME_SHORT : frame_decode(&f->head, f->payload, f->raw);
    }
    if (fault) {
        snprintf(why, WHY_MAX, "the packed file is damaged: %s", frame_fault_text(fault));
        return false;
    }
    f->raw[f->head.raw_len] = '\0';
    return true;
}

bool pack_read_header(int fd, struct pack_facts *p, char *why) {
    struct frame_in f = {.payload = NULL};
    struct json top;
    *p = (struct pack_facts){.log_size = 0};
    bool fine = next_frame(fd, &f, why);
    if (fine && f.head.kind != PACK_HEADER)
        fine = fail(why, f.head.kind == FRAME_HEADER ? "this is a log, not a packed recording" : "no packed recording");
    if (fine &&
        !(json_parse((char *)f.raw, f.head.raw_len, &top) && json_member_u64(top, "log_size", &p->log_size) &&
          json_member_u64(top, "objects", &p->objects) && json_member_u64(top, "objects_size", &p->objects_size)))
        fine = fail(why, "the header of the packed file makes no sense");
    if (fine && json_member_u64(top, "files", &p->files)) json_member_u64(top, "files_size", &p->files_size);
    if (fine && (!json_member_string(top, "name", p->name, sizeof p->name) || !pack_name_is_fine(p->name)))
        p->name[0] = '\0';
    free_in(&f);
    return fine;
}

static bool read_log(int fd, struct frame_in *f, const struct pack_facts *p, const struct unpacker *u, char *why) {
    uint64_t at = 0;
    while (at < p->log_size) {
        if (!next_frame(fd, f, why)) return false;
        if (f->head.kind != PACK_LOG || f->head.position != at || f->head.raw_len > p->log_size - at)
            return fail(why, "the packed file is damaged: its log is not in one piece");
        if (!write_all(u->log, f->raw, f->head.raw_len)) return fail_errno(why, "cannot write the log");
        at += f->head.raw_len;
    }
    return true;
}

/* PACK_DATA frames of one object, checked against its name. */
static bool read_bytes(int fd, struct frame_in *f, const struct frame_object *o, int to, char *why) {
    XXH3_state_t *hash = XXH3_createState();
    if (!hash) return fail(why, "out of memory");
    XXH3_128bits_reset(hash);
    bool fine = true;
    for (uint64_t at = 0; fine && at < o->size; at += f->head.raw_len) {
        fine = next_frame(fd, f, why);
        if (fine && (f->head.kind != PACK_DATA || f->head.position != at || f->head.raw_len > o->size - at))
            fine = fail(why, "the packed file is damaged: an object is not in one piece");
        if (fine) XXH3_128bits_update(hash, f->raw, f->head.raw_len);
        if (fine && to >= 0 && !write_all(to, f->raw, f->head.raw_len))
            fine = fail_errno(why, "cannot write an object");
    }
    XXH128_hash_t h = XXH3_128bits_digest(hash);
    XXH3_freeState(hash);
    if (fine && (h.low64 != o->name.lo || h.high64 != o->name.hi))
        fine = fail(why, "the packed file is damaged: an object's bytes are not what its name says");
    return fine;
}

/* One object: the one that the log names at this place. */
static bool read_object(int fd, struct frame_in *f, const struct frame_object *wanted, const struct unpacker *u,
                        char *why) {
    struct frame_object o;
    if (!next_frame(fd, f, why)) return false;
    if (f->head.kind != PACK_OBJECT || f->head.raw_len < sizeof o)
        return fail(why, "the packed file is damaged: an object is missing");
    memcpy(&o, f->raw, sizeof o);
    if (memcmp(&o.name, &wanted->name, sizeof o.name) != 0 || o.size != wanted->size)
        return fail(why, "the packed file is damaged: an object is not the one that the log needs");
    int to = u->begin_object(u->arg, o.name, o.size, why);
    if (to == -1) return false;
    bool fine = read_bytes(fd, f, &o, to, why);
    char ignored[WHY_MAX];
    if (to >= 0 && !u->finish_object(u->arg, o.name, to, fine, fine ? why : ignored)) fine = false;
    return fine;
}

/* One file beside the log. *left: bytes that the header still has for files. */
static bool read_file(int fd, struct frame_in *f, const struct unpacker *u, uint64_t *left, char *why) {
    struct frame_file h;
    char name[PACK_NAME];
    if (!next_frame(fd, f, why)) return false;
    if (f->head.kind != PACK_FILE || f->head.raw_len < sizeof h)
        return fail(why, "the packed file is damaged: a file is missing");
    memcpy(&h, f->raw, sizeof h);
    if (h.name_len != f->head.raw_len - sizeof h || h.name_len == 0 || h.name_len >= sizeof name || h.size > *left)
        return fail(why, "the packed file is damaged: a file of it makes no sense");
    memcpy(name, f->raw + sizeof h, h.name_len);
    name[h.name_len] = '\0';
    if (!pack_name_is_fine(name)) return fail(why, "the packed file has a file of a name that cannot be used");
    *left -= h.size;
    int to = u->begin_file ? u->begin_file(u->arg, name, why) : -1;
    if (u->begin_file && to < 0) return false;
    bool fine = true;
    for (uint64_t at = 0; fine && at < h.size; at += f->head.raw_len) {
        fine = next_frame(fd, f, why);
        if (fine && (f->head.kind != PACK_DATA || f->head.position != at || f->head.raw_len > h.size - at))
            fine = fail(why, "the packed file is damaged: a file of it is not in one piece");
        if (fine && to >= 0 && !write_all(to, f->raw, f->head.raw_len)) fine = fail_errno(why, "cannot write a file");
    }
    if (to >= 0) close(to);
    return fine;
}

static bool read_files(int fd, struct frame_in *f, const struct pack_facts *p, const struct unpacker *u, char *why) {
    uint64_t left = p->files_size;
    for (uint64_t i = 0; i < p->files; i++)
        if (!read_file(fd, f, u, &left, why)) return false;
    return left == 0 || fail(why, "the packed file is damaged: its files are smaller than its header says");
}

static bool read_end(int fd, struct frame_in *f, char *why) {
    char more;
    if (!next_frame(fd, f, why)) return false;
    if (f->head.kind != PACK_END) return fail(why, "the packed file is damaged: it goes on behind its objects");
    if (read_full(fd, &more, 1) != 0) return fail(why, "the packed file is damaged: it goes on behind its end");
    return true;
}

static bool read_objects(int fd, struct frame_in *f, const struct pack_facts *p, const struct recording *r,
                         const struct unpacker *u, char *why) {
    size_t count;
    uint64_t size;
    const struct object_ref **objects = distinct_objects(r, &count, &size);
    if (!objects) return fail(why, "out of memory");
    bool fine = count == p->objects && size == p->objects_size;
    if (!fine) fail(why, "the packed file is damaged: its header and its log name different objects");
    for (size_t i = 0; fine && i < count; i++) fine = read_object(fd, f, &objects[i]->object, u, why);
    free(objects);
    return fine && read_files(fd, f, p, u, why) && read_end(fd, f, why);
}

bool pack_read(int fd, const struct pack_facts *p, const struct unpacker *u, char *why) {
    uint64_t room = u->limit;
    bool fits =
        p->log_size <= room && p->objects_size <= (room -= p->log_size) && p->files_size <= room - p->objects_size;
    if (!fits) {
        snprintf(why, WHY_MAX, "the recording would take %.1f GB, more than the limit; --limit SIZE sets another",
                 ((double)p->log_size + (double)p->objects_size + (double)p->files_size) / 1e9);
        return false;
    }
    struct frame_in f = {.payload = NULL};
    struct recording *r = NULL;
    bool fine = read_log(fd, &f, p, u, why);
    if (fine) {
        char name[64];
        snprintf(name, sizeof name, "/proc/self/fd/%d", u->log);
        r = recording_open(name, why);
        fine = r != NULL;
        if (fine && r->cut < r->size) fine = fail(why, "the packed file is damaged: its log is");
        if (fine && !recording_verify(r)) fine = fail(why, "the packed file is damaged: its log is");
    }
    fine = fine && read_objects(fd, &f, p, r, u, why);
    recording_close(r);
    free_in(&f);
    return fine;
}

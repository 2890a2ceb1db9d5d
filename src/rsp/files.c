/* vFile packets. */
#include "rsp/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsp/soname.h"

#define REGIONS_MAX 65536
#define READ_MOST 65536
#define ARGUMENTS_MOST 131072

/* As the protocol numbers errors. */
enum { FILE_ENOENT = 2, FILE_EBADF = 9, FILE_EINVAL = 22, FILE_EMFILE = 24, FILE_EROFS = 30, FILE_EIO = 9999 };

static void fail(struct out *o, int error) { out_format(o, "F-1,%x", error); }

/* ---- /proc ---- */

/* The regions of the process; free() them. */
static struct memory_region *regions_of(struct target *t, size_t *n) {
    for (size_t cap = 512; cap <= REGIONS_MAX; cap *= 2) {
        struct memory_region *all = malloc(cap * sizeof *all);
        if (!all) return NULL;
        *n = t->ops->regions(t, all, cap);
        if (*n < cap || cap == REGIONS_MAX) {
            if (*n > cap) *n = cap;
            return all;
        }
        free(all);
    }
    return NULL;
}

static int open_maps(struct target *t) {
    size_t n;
    struct memory_region *all = regions_of(t, &n);
    int fd = all ? memfd_create("maps", MFD_CLOEXEC) : -1;
    for (size_t i = 0; fd >= 0 && i < n; i++) {
        const struct memory_region *r = &all[i];
        char name[sizeof r->name];
        snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, r->name);
        for (char *p = name; *p; p++)
            if ((unsigned char)*p < ' ') *p = '?';
        dprintf(fd, "%08lx-%08lx %c%c%cp %08lx 00:00 0 %s%s\n", r->start, r->end, r->prot & PROT_READ ? 'r' : '-',
                r->prot & PROT_WRITE ? 'w' : '-', r->prot & PROT_EXEC ? 'x' : '-', r->offset,
                name[0] ? "                  " : "", name);
    }
    free(all);
    return fd;
}

static int open_arguments(struct target *t) {
    char *text = t->ops->arguments ? malloc(ARGUMENTS_MOST) : NULL;
    size_t n = text ? t->ops->arguments(t, text, ARGUMENTS_MOST) : 0;
    int fd = n ? memfd_create("cmdline", MFD_CLOEXEC) : -1;
    if (fd >= 0 && write(fd, text, n) < 0) {
        close(fd);
        fd = -1;
    }
    free(text);
    return fd;
}

/* /proc/PID/NAME or /proc/PID/task/TID/NAME of the recorded process: NAME. NULL: something else. */
static const char *proc_name(struct target *t, const char *path) {
    char *end;
    if (strncmp(path, "/proc/", 6) != 0 || path[6] < '1' || path[6] > '9') return NULL;
    if (strtol(path + 6, &end, 10) != t->ops->pid(t) || *end != '/') return NULL;
    const char *name = end + 1;
    if (strncmp(name, "task/", 5) != 0) return name;
    strtol(name + 5, &end, 10);
    return *end == '/' ? end + 1 : NULL;
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A library that is mapped under another path than it was asked for by: /lib/libx.so.1 may be /usr/lib/libx-1.2.so. */
static int open_mapped(struct target *t, const char *path) {
    size_t n;
    struct memory_region *all = regions_of(t, &n);
    const char *wanted = base_of(path), *before = "";
    char name[256];
    int found = -1;
    for (size_t i = 0; i < n && all && found < 0; i++) {
        all[i].name[sizeof all->name - 1] = '\0';
        if (all[i].name[0] != '/' || strcmp(all[i].name, before) == 0) continue;
        before = all[i].name;
        int fd = t->ops->open_file(t, all[i].name);
        if (fd < 0) continue;
        if (strcmp(base_of(all[i].name), wanted) == 0 ||
            (elf_soname(fd, name, sizeof name) && strcmp(name, wanted) == 0))
            found = fd;
        else
            close(fd);
    }
    free(all);
    return found;
}

static int open_path(struct target *t, const char *path) {
    const char *proc = proc_name(t, path);
    if (proc && (strcmp(proc, "maps") == 0 || strcmp(proc, "smaps") == 0)) return open_maps(t);
    if (proc) return strcmp(proc, "cmdline") == 0 ? open_arguments(t) : -1;
    int fd = t->ops->open_file(t, path);
    return fd < 0 && strstr(base_of(path), ".so") ? open_mapped(t, path) : fd;
}

/* ---- operations: `in` stands behind the name ---- */

static void vfile_open(struct files *f, struct target *t, struct in *in, struct out *o) {
    char path[PATH_MAX];
    uint64_t flags, mode;
    struct in name = in_until(in, ',');
    int slot = 0;
    if (!in_text(&name, path, sizeof path) || !in_char(in, ',') || !in_hex(in, &flags) || !in_char(in, ',') ||
        !in_hex(in, &mode))
        return fail(o, FILE_EINVAL);
    if (flags != 0) return fail(o, FILE_EROFS); /* O_RDONLY */
    while (slot < FILES_MAX && f->fds[slot]) slot++;
    if (slot == FILES_MAX) return fail(o, FILE_EMFILE);
    int fd = open_path(t, path);
    if (fd < 0) return fail(o, FILE_ENOENT);
    f->fds[slot] = fd + 1;
    out_format(o, "F%x", slot);
}

/* The descriptor; -1: none. */
static int parse_fd(const struct files *f, struct in *in, uint64_t *slot) {
    return in_hex(in, slot) && *slot < FILES_MAX ? f->fds[*slot] - 1 : -1;
}

static void vfile_close(struct files *f, struct target *t, struct in *in, struct out *o) {
    uint64_t slot;
    int fd = parse_fd(f, in, &slot);
    if (fd < 0) return fail(o, FILE_EBADF);
    close(fd);
    f->fds[slot] = 0;
    out_str(o, "F0");
}

static void vfile_pread(struct files *f, struct target *t, struct in *in, struct out *o) {
    uint64_t slot, count, offset;
    int fd = parse_fd(f, in, &slot);
    if (!in_char(in, ',') || !in_hex(in, &count) || !in_char(in, ',') || !in_hex(in, &offset) || offset > INT64_MAX)
        return fail(o, FILE_EINVAL);
    if (fd < 0) return fail(o, FILE_EBADF);
    if (count > READ_MOST) count = READ_MOST;
    uint8_t *bytes = malloc(count + 1);
    ssize_t n = bytes ? pread(fd, bytes, count, (off_t)offset) : -1;
    if (n < 0) {
        fail(o, FILE_EIO);
    } else { /* the count comes first, and is of what has room */
        struct out part = {.most = o->most - 32};
        size_t fits = out_binary(&part, bytes, (size_t)n);
        out_format(o, "F%zx;", fits);
        out_bytes(o, part.bytes, part.len);
        out_free(&part);
    }
    free(bytes);
}

/* Numbers of a struct stat, high bytes first. */
static void put_number(uint8_t **to, uint64_t value, int bytes) {
    while (bytes--) *(*to)++ = (uint8_t)(value >> 8 * bytes);
}

static void put_stat(struct out *o, int fd) {
    struct stat st;
    uint8_t packed[64], *p = packed;
    if (fstat(fd, &st) < 0) return fail(o, FILE_EIO);
    put_number(&p, 0, 4); /* device */
    put_number(&p, (uint32_t)st.st_ino, 4);
    put_number(&p, (st.st_mode & 0777) | (S_ISDIR(st.st_mode) ? 040000 : 0100000), 4);
    put_number(&p, 1, 4);
    put_number(&p, st.st_uid, 4);
    put_number(&p, st.st_gid, 4);
    put_number(&p, 0, 4);
    put_number(&p, (uint64_t)st.st_size, 8);
    put_number(&p, 4096, 8);
    put_number(&p, (uint64_t)st.st_blocks, 8);
    for (int i = 0; i < 3; i++) put_number(&p, (uint32_t)st.st_mtime, 4);
    out_format(o, "F%zx;", sizeof packed);
    out_binary(o, packed, sizeof packed);
}

static void vfile_fstat(struct files *f, struct target *t, struct in *in, struct out *o) {
    uint64_t slot;
    int fd = parse_fd(f, in, &slot);
    if (fd < 0) return fail(o, FILE_EBADF);
    put_stat(o, fd);
}

static void vfile_stat(struct files *f, struct target *t, struct in *in, struct out *o) {
    char path[PATH_MAX];
    if (!in_text(in, path, sizeof path)) return fail(o, FILE_EINVAL);
    int fd = open_path(t, path);
    if (fd < 0) return fail(o, FILE_ENOENT);
    put_stat(o, fd);
    close(fd);
}

static void vfile_readlink(struct files *f, struct target *t, struct in *in, struct out *o) {
    char path[PATH_MAX], exe[PATH_MAX];
    if (!in_text(in, path, sizeof path)) return fail(o, FILE_EINVAL);
    const char *proc = proc_name(t, path);
    if (!proc || strcmp(proc, "exe") != 0 || !t->ops->exe_path(t, exe, sizeof exe)) return fail(o, FILE_ENOENT);
    size_t n = strnlen(exe, sizeof exe);
    out_format(o, "F%zx;", n);
    out_binary(o, exe, n);
}

/* There is one file system: the recording's. */
static void vfile_setfs(struct files *f, struct target *t, struct in *in, struct out *o) { out_str(o, "F0"); }

static const struct {
    const char *name;
    void (*act)(struct files *, struct target *, struct in *, struct out *);
} operations[] = {
    {"open:", vfile_open}, {"close:", vfile_close},       {"pread:", vfile_pread}, {"fstat:", vfile_fstat},
    {"stat:", vfile_stat}, {"readlink:", vfile_readlink}, {"setfs:", vfile_setfs},
};

void files_packet(struct files *f, struct target *t, struct in *in, struct out *o) {
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (in_word(in, operations[i].name)) {
            operations[i].act(f, t, in, o);
            return;
        }
}

void files_close_all(struct files *f) {
    for (int i = 0; i < FILES_MAX; i++) {
        if (f->fds[i]) close(f->fds[i] - 1);
        f->fds[i] = 0;
    }
}

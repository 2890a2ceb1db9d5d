/* Where gdb finds the files of a recording. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/debug.h"
#include "controller/where.h"
#include "rsp/soname.h"

/* A path that can stand in a gdb command: it comes from the recording. */
static bool is_plain(const char *path) {
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-=,@~:%";
    return path[0] == '/' && !path[strspn(path, fine)] && !strstr(path, "/../") && !strstr(path, "//") &&
           strlen(path) < 2048;
}

static uint64_t ns_of(struct timespec t) { return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec; }

/* The file at its old place still has its old contents. */
static bool is_unchanged(const struct object_ref *o) {
    struct stat st;
    int fd = open(o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool same = false;
    if (fd < 0) return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && (uint64_t)st.st_size == o->object.size) {
        same = st.st_dev == o->object.dev && st.st_ino == o->object.ino && ns_of(st.st_mtim) == o->object.mtime_ns &&
               ns_of(st.st_ctim) == o->object.ctime_ns;
        void *bytes = same ? MAP_FAILED : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            XXH128_hash_t h = XXH3_128bits(bytes, (size_t)st.st_size);
            same = h.low64 == o->object.name.lo && h.high64 == o->object.name.hi;
            munmap(bytes, (size_t)st.st_size);
        }
    }
    close(fd);
    return same;
}

static void store_path(const char *store, const struct object_ref *o, char *path, size_t cap) {
    char file[OBJECT_FILE];
    object_file(o->object.name, file);
    snprintf(path, cap, "%s/%s", store, file);
}

/* Programs and libraries; other files gdb does not ask for. */
static bool is_elf(const char *store, const struct object_ref *o, char *soname, size_t cap) {
    char path[4200];
    store_path(store, o, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool elf = fd >= 0 && elf_soname(fd, soname, cap);
    if (fd >= 0) close(fd);
    return elf;
}

/* dir + path leads to `to`; the directories above it are made. */
static bool make_link(const char *dir, const char *path, const char *to) {
    char link[4200];
    if ((size_t)snprintf(link, sizeof link, "%s%s", dir, path) >= sizeof link) return false;
    char *slash = strrchr(link, '/');
    *slash = '\0';
    if (!where_make_dirs(link)) return false;
    *slash = '/';
    unlink(link); /* the last one counts: a file may have been written anew while it was recorded */
    return symlink(to, link) == 0;
}

/* A library under its own name, too, and /lib for /usr/lib. */
static void make_aliases(const char *dir, const char *path, const char *soname, const char *to) {
    char other[4200], root[4200];
    const char *slash = strrchr(path, '/');
    if (soname[0] && !strchr(soname, '/') && is_plain(path)) {
        snprintf(other, sizeof other, "%.*s/%s", (int)(slash - path), path, soname);
        if (is_plain(other) && strcmp(other, path) != 0) make_link(dir, other, to);
    }
    if (strncmp(path, "/usr/lib", 8) == 0) {
        snprintf(other, sizeof other, "%.*s", 5 + (int)strcspn(path + 5, "/"), path);
        snprintf(root, sizeof root, "%s/%s", dir, other + 5);
        if (symlink(other + 1, root) < 0 && errno != EEXIST) return;
    }
}

/* The dynamic linker under the name that the program asks for, which is how gdb knows it: on the way there may be any links. */
static void link_interpreter(const struct recording *r, const char *store, const char *exe, const char *dir) {
    char path[4200], name[2048] = "", target[4200], soname[256];
    for (size_t i = 0; i < r->n_objects; i++) {
        if (strcmp(r->objects[i].path, exe) != 0) continue;
        store_path(store, &r->objects[i], path, sizeof path);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || !elf_interpreter(fd, name, sizeof name)) name[0] = '\0';
        if (fd >= 0) close(fd);
    }
    const char *base = strrchr(name, '/');
    snprintf(path, sizeof path, "%s%s", dir, name);
    if (!base || !is_plain(name) || access(path, F_OK) == 0) return;
    for (size_t i = 0; i < r->n_objects; i++) {
        const struct object_ref *o = &r->objects[i];
        if (!is_plain(o->path) || !is_elf(store, o, soname, sizeof soname) || strcmp(soname, base + 1) != 0) continue;
        snprintf(target, sizeof target, "%s%s", dir, o->path);
        make_link(dir, name, target);
    }
}

bool debug_files_find(struct debug_files *f, const struct recording *r, const char *store, const char *exe,
                      const char *dir) {
    bool *unchanged = calloc(r->n_objects + 1, sizeof *unchanged), all = true, has_program = false;
    char soname[256], to[4200];
    if (!unchanged || !is_plain(exe) || !is_plain(dir)) goto out;
    for (size_t i = 0; i < r->n_objects; i++) {
        const struct object_ref *o = &r->objects[i];
        if (!is_plain(o->path) || !is_elf(store, o, soname, sizeof soname)) continue;
        unchanged[i] = is_unchanged(o);
        all &= unchanged[i];
        has_program |= strcmp(o->path, exe) == 0;
    }
    if (!has_program) goto out;
    snprintf(f->sysroot, sizeof f->sysroot, "%s", all ? "/" : dir);
    snprintf(f->program, sizeof f->program, "%s%s", all ? "" : dir, exe);
    for (size_t i = 0; i < r->n_objects && !all; i++) {
        const struct object_ref *o = &r->objects[i];
        if (!is_plain(o->path) || !is_elf(store, o, soname, sizeof soname)) continue;
        if (unchanged[i])
            snprintf(to, sizeof to, "%s", o->path);
        else
            store_path(store, o, to, sizeof to);
        if (make_link(dir, o->path, to)) make_aliases(dir, o->path, soname, to);
    }
    if (!all) link_interpreter(r, store, exe, dir);
out:
    free(unchanged);
    return has_program;
}

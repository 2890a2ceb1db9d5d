#include "sphere/contents.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/hash.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/shared.h"
#include "sphere/aspace.h"
#include "sphere/gate.h"
#include "sphere/objects.h"

#define FILES_MAX 1024
#define NAME "reprise-contents"
#define SEEK_DATA_ 3
#define SEEK_HOLE_ 4

static uint64_t files[FILES_MAX]; /* numbers of those that are there, each with SHARED_ROOM bytes; 0: free */
static size_t n_files;
static int fd; /* 0: none */

static int make(void) {
    long new = SYS(memfd_create, NAME, 1 /* MFD_CLOEXEC */);
    if (new < 0 || SYS(ftruncate, new, FILES_MAX * SHARED_ROOM) != 0) die("no memory for the contents of shared files");
    return (int)new;
}

struct file_source contents_of(uint64_t object, const struct ev_mapped *first) {
    size_t i = 0;
    if (!fd) fd = make();
    while (i < n_files && files[i] != object) i++;
    if (i == n_files) {
        for (i = 0; i < n_files && files[i];) i++;
        if (i == FILES_MAX) die("more than %d shared files are mapped", FILES_MAX);
        n_files = MAX(n_files, i + 1);
        files[i] = object;
        if (first) objects_fill(fd, i * SHARED_ROOM, first);
    }
    return (struct file_source){fd, i * SHARED_ROOM};
}

static bool is_zero(const uint64_t *page) {
    for (size_t i = 0; i < PAGE_SIZE / 8; i++)
        if (page[i]) return false;
    return true;
}

static void keep_pages(const struct mapping *m, struct file_source to) {
    SYS(mprotect, m->start, m->end - m->start, PROT_READ);
    for (gaddr page = m->start; page < m->end; page += PAGE_SIZE)
        if (!is_zero((const uint64_t *)page) &&
            SYS(pwrite64, to.fd, page, PAGE_SIZE, to.base + m->offset + (page - m->start)) != PAGE_SIZE)
            die("no memory for a copy of shared memory");
}

bool contents_has(uint64_t object) {
    for (size_t i = 0; i < n_files; i++)
        if (files[i] == object) return true;
    return false;
}

struct file_source contents_of_anonymous(uint64_t object) {
    struct mapping m;
    if (contents_has(object)) return contents_of(object, NULL);
    struct file_source to = contents_of(object, NULL);
    for (size_t i = 0; aspace_nth(i, &m); i++) {
        if (m.object != object || m.shows_shared) continue;
        keep_pages(&m, to);
        aspace_restore(&m, to.fd, to.base);
    }
    return to;
}

void contents_cut(struct file_source s, uint64_t size) {
    enum { KEEP_SIZE = 1, PUNCH_HOLE = 2 };
    if (size < SHARED_ROOM) SYS(fallocate, s.fd, KEEP_SIZE | PUNCH_HOLE, s.base + size, SHARED_ROOM - size);
}

void contents_forget(uint64_t object) {
    for (size_t i = 0; i < n_files; i++) {
        if (files[i] != object) continue;
        contents_cut((struct file_source){fd, i * SHARED_ROOM}, 0);
        files[i] = 0;
    }
}

/* ---- copies ---- */

/* The next piece of data from *at on; false: there is none. */
static bool next_data(int from, uint64_t *at, uint64_t *end) {
    long start = SYS(lseek, from, *at, SEEK_DATA_);
    if (start < 0) return false;
    *at = (uint64_t)start;
    *end = (uint64_t)SYS(lseek, from, start, SEEK_HOLE_);
    return *end > *at;
}

void contents_copy(int from, int to) {
    for (uint64_t at = 0, end; next_data(from, &at, &end);) {
        SYS(lseek, to, at, 0 /* SEEK_SET */);
        for (long n; at < end && (n = SYS(sendfile, to, from, &at, end - at)) > 0;) {}
        if (at < end) die("no memory for a copy of shared files");
    }
}

struct area { /* of memory that shows the file */
    gaddr start, end;
    int prot, type;
    uint64_t offset;
};

/* A line of /proc/self/maps: "start-end rwxs offset dev ino name". */
static bool parse_area(const char *line, uint64_t ino, struct area *a) {
    const char *p = line;
    a->start = read_hex(&p);
    p++;
    a->end = read_hex(&p);
    p++;
    a->prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) | (p[2] == 'x' ? PROT_EXEC : 0);
    a->type = p[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
    p += 5;
    a->offset = read_hex(&p);
    if (!(p = strchr(p + 1, ' '))) return false;
    uint64_t is = 0;
    for (p++; *p >= '0' && *p <= '9'; p++) is = is * 10 + (uint64_t)(*p - '0');
    return is == ino && (p = strchr(p, '/')) && str_starts(p, "/memfd:" NAME);
}

/* All of them, before any is changed. */
static struct area *find_areas(uint64_t ino, size_t *n, size_t *room) {
    long maps = SYS(openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0) die("/proc is needed to copy a process with shared files");
    static char text[65536];
    size_t have = 0;
    struct area *list = arena_pages(*room = PAGE_SIZE);
    *n = 0;
    for (long got; (got = SYS(read, maps, text + have, sizeof text - 1 - have)) > 0;) {
        have += (size_t)got;
        text[have] = '\0';
        char *line = text;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            if ((*n + 1) * sizeof *list > *room) {
                struct area *more = arena_pages(*room * 2);
                memcpy(more, list, *room);
                arena_free_pages(list, *room);
                list = more;
                *room *= 2;
            }
            *n += parse_area(line, ino, &list[*n]);
        }
        have -= (size_t)(line - text);
        memmove(text, line, have);
    }
    SYS(close, maps);
    return list;
}

void contents_after_fork(void) {
    struct stat st;
    if (!fd) return;
    if (SYS(fstat, fd, &st) != 0) die("the contents of shared files are gone");
    int copy = make();
    contents_copy(fd, copy);
    size_t n, room;
    struct area *list = find_areas(st.st_ino, &n, &room);
    for (size_t i = 0; i < n; i++) {
        const struct area *a = &list[i];
        if (a->type == MAP_PRIVATE)
            file_changes_move_private(a->start, a->end, a->prot, copy, a->offset);
        else
            SYS(mmap, a->start, a->end - a->start, a->prot, MAP_SHARED | MAP_FIXED, copy, a->offset);
    }
    arena_free_pages(list, room);
    SYS(dup3, copy, fd, O_CLOEXEC); /* others know it by its number */
    SYS(close, copy);
}

uint64_t contents_pages(void) {
    struct stat st;
    return fd && SYS(fstat, fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 / PAGE_SIZE : 0;
}

bool contents_next(uint64_t object, uint64_t *page, void *to) {
    size_t i = 0;
    while (i < n_files && files[i] != object) i++;
    if (!fd || i == n_files || *page >= SHARED_ROOM / PAGE_SIZE) return false;
    uint64_t limit = (i + 1) * SHARED_ROOM;
    for (uint64_t at = i * SHARED_ROOM + *page * PAGE_SIZE, end; next_data(fd, &at, &end) && at < limit;)
        for (; at < MIN(end, limit); at += PAGE_SIZE)
            if (SYS(pread64, fd, to, PAGE_SIZE, at) == PAGE_SIZE && !is_zero(to)) {
                *page = at % SHARED_ROOM / PAGE_SIZE;
                return true;
            }
    return false;
}

uint64_t contents_hash(void) {
    uint64_t page[PAGE_SIZE / 8], h = 0;
    for (uint64_t at = 0, end; fd && next_data(fd, &at, &end);)
        for (; at < end; at += PAGE_SIZE)
            if (SYS(pread64, fd, page, PAGE_SIZE, at) == PAGE_SIZE && !is_zero(page))
                h += hash_bytes(page, PAGE_SIZE, files[at / SHARED_ROOM] + at % SHARED_ROOM); /* in any order */
    return h;
}

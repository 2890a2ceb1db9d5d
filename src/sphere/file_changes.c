#include "sphere/file_changes.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/code_files.h"
#include "sphere/event_log.h"
#include "sphere/gate.h"
#include "sphere/objects.h"

#define FILES_MAX 256
#define PIECE 32768u

struct known {
    uint64_t dev, ino;
    struct object_name name; /* replay */
};

struct known_set {
    struct known list[FILES_MAX];
    size_t n, next; /* the oldest gives way */
};

static struct known_set opened;   /* recording: for writing, lately */
static struct known_set changing; /* recording: mapped, and may be written to */
static struct known_set mapped;   /* replay */

static struct known *find(struct known_set *s, uint64_t dev, uint64_t ino) {
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].ino == ino && s->list[i].dev == dev) return &s->list[i];
    return NULL;
}

static struct known *add(struct known_set *s, uint64_t dev, uint64_t ino) {
    struct known *k = find(s, dev, ino);
    if (k) return k;
    k = s->n < FILES_MAX ? &s->list[s->n++] : &s->list[s->next++ % FILES_MAX];
    *k = (struct known){.dev = dev, .ino = ino};
    return k;
}

/* ---- recording ---- */

static bool is_mapped(uint64_t dev, uint64_t ino) {
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (m.file.ino == ino && m.file.dev == dev) return true;
    return false;
}

static bool is_regular(long fd, struct stat *st) {
    return SYS(fstat, fd, st) == 0 && (st->st_mode & 0170000) == 0100000;
}

void file_changes_opened(long fd, uint64_t flags) {
    struct stat st;
    if (fd < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) || !is_regular(fd, &st)) return;
    add(&opened, st.st_dev, st.st_ino);
    if (is_mapped(st.st_dev, st.st_ino)) add(&changing, st.st_dev, st.st_ino);
}

void file_changes_mapped(int fd, const struct file_id *id) {
    long mode = SYS(fcntl, fd, F_GETFL);
    if ((mode >= 0 && (mode & O_ACCMODE) != O_RDONLY) || find(&opened, id->dev, id->ino))
        add(&changing, id->dev, id->ino);
}

struct change {
    struct thread *t;
    const struct stat *st;
    uint64_t at;
};

static bool has_changed;

bool file_changes_any(void) { return has_changed; }

static void log_piece(struct change *c, gaddr from, uint32_t len) {
    has_changed = true;
    struct event *e = event_new(c->t, EV_CHANGE, 0, sizeof(struct ev_change) + len);
    struct ev_change *v = (struct ev_change *)(e + 1);
    memset((uint8_t *)e + e->size - 8, 0, 8);
    *v = (struct ev_change){
        .dev = c->st->st_dev, .ino = c->st->st_ino, .offset = c->at, .size = (uint64_t)c->st->st_size, .len = len};
    if (len && !guest_read(v + 1, from, len)) v->len = 0;
    c->at += len;
}

static void log_bytes(struct change *c, gaddr from, uint64_t n) {
    for (uint64_t off = 0; off < n;) {
        uint32_t len = (uint32_t)MIN(n - off, (uint64_t)PIECE);
        log_piece(c, from + off, len);
        off += len;
    }
}

static void log_vector(struct change *c, gaddr v, uint64_t count, uint64_t n) {
    uint64_t piece[2];
    for (uint64_t i = 0; i < count && n && guest_read(piece, v + 16 * i, 16); i++) {
        uint64_t len = MIN(piece[1], n);
        log_bytes(c, piece[0], len);
        n -= len;
    }
}

/* Bytes that never were in the program's memory: from the file itself. */
static void log_from_file(struct change *c, int fd, uint64_t n) {
    static uint8_t buf[PIECE];
    while (n) {
        long got = SYS(pread64, fd, buf, MIN(n, (uint64_t)PIECE), c->at);
        if (got <= 0) {
            say("a mapped file was changed through a descriptor that cannot be read: replay may diverge");
            return;
        }
        log_piece(c, (gaddr)buf, (uint32_t)got);
        n -= (uint64_t)got;
    }
}

static uint64_t position(int fd, uint64_t n) { return (uint64_t)SYS(lseek, fd, 0, 1 /* SEEK_CUR */) - n; }

/* Which argument names the file that the call changes; -1: none. */
static int changed_file(uint64_t nr) {
    switch (nr) {
    case __NR_write:
    case __NR_writev:
    case __NR_pwrite64:
    case __NR_pwritev:
    case __NR_pwritev2:
    case __NR_ftruncate:
    case __NR_fallocate:
    case __NR_sendfile: return 0;
    case __NR_splice:
    case __NR_copy_file_range: return 2;
    default: return -1;
    }
}

void file_changes_log(struct thread *t, uint64_t nr, const uint64_t a[6], long ret) {
    if (likely(!changing.n) || ret < 0) return;
    int arg = changed_file(nr);
    struct stat st;
    if (arg < 0 || !is_regular((int)a[arg], &st) || !find(&changing, st.st_dev, st.st_ino)) return;
    struct change c = {.t = t, .st = &st};
    uint64_t n = (uint64_t)ret;
    int fd = (int)a[arg];
    switch (nr) {
    case __NR_ftruncate: log_piece(&c, 0, 0); break;
    case __NR_fallocate: /* may clear a range: what is there now */
        c.at = a[2];
        log_piece(&c, 0, 0);
        if (a[1] & ~1ull)
            log_from_file(&c, fd, MIN(a[3], (uint64_t)st.st_size > a[2] ? (uint64_t)st.st_size - a[2] : 0));
        break;
    case __NR_write:
        c.at = position(fd, n);
        log_bytes(&c, a[1], n);
        break;
    case __NR_writev:
        c.at = position(fd, n);
        log_vector(&c, a[1], a[2], n);
        break;
    case __NR_pwrite64:
        c.at = a[3];
        log_bytes(&c, a[1], n);
        break;
    case __NR_pwritev:
    case __NR_pwritev2:
        c.at = (int64_t)a[3] == -1 ? position(fd, n) : a[3];
        log_vector(&c, a[1], a[2], n);
        break;
    default: { /* sendfile, splice, copy_file_range */
        uint64_t end;
        gaddr offset = nr == __NR_sendfile ? 0 : a[3];
        c.at = offset && guest_read(&end, offset, 8) ? end - n : position(fd, n);
        log_from_file(&c, fd, n);
    }
    }
}

/* ---- replay ---- */

void file_changes_note(uint64_t dev, uint64_t ino, const struct object_name *name) {
    add(&mapped, dev, ino)->name = *name;
}

/* Bits of a word of /proc/self/pagemap: private memory that the program has written. */
#define PAGE_THERE (3ull << 62)
#define PAGE_OF_FILE (1ull << 61)

/* Maps the copy in the place of the recording's file; pages that the program has written stay as they are. */
static void move_to_copy(const struct mapping *m, int fd) {
    long pagemap = SYS(openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t pages = (m->end - m->start) / PAGE_SIZE, n = 0;
    uint8_t *saved = arena_pages(m->end - m->start);
    uint32_t *which = arena_pages(pages * sizeof *which);
    for (size_t i = 0; i < pages && pagemap >= 0; i++) {
        uint64_t word = 0;
        SYS(pread64, pagemap, &word, 8, (m->start / PAGE_SIZE + i) * 8);
        if (!(word & PAGE_THERE) || (word & PAGE_OF_FILE)) continue;
        if (guest_read(saved + n * PAGE_SIZE, m->start + i * PAGE_SIZE, PAGE_SIZE)) which[n++] = (uint32_t)i;
    }
    if (pagemap >= 0) SYS(close, pagemap);
    SYS(mmap, m->start, m->end - m->start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, m->offset);
    for (size_t i = 0; i < n; i++) memcpy((void *)(m->start + which[i] * PAGE_SIZE), saved + i * PAGE_SIZE, PAGE_SIZE);
    SYS(mprotect, m->start, m->end - m->start, aspace_host_prot((int)m->prot));
    arena_free_pages(saved, m->end - m->start);
    arena_free_pages(which, pages * sizeof *which);
}

/* This process's own copy of the file, made when it first changes. */
static int copy_of(const struct ev_change *c) {
    struct known *k = find(&mapped, c->dev, c->ino);
    if (!k) return -1;
    struct ev_mapped v = {.object = k->name, .dev = c->dev, .ino = c->ino};
    bool is_new = false;
    int fd = objects_copy(&v, &is_new);
    struct mapping m;
    for (size_t i = 0; is_new && aspace_nth(i, &m); i++)
        if (!m.runtime && m.file.ino == c->ino && m.file.dev == c->dev && (m.flags & MAP_TYPE) == MAP_PRIVATE)
            move_to_copy(&m, fd);
    return fd;
}

void file_changes_apply(const struct ev_change *c) {
    code_files_changed(c->dev, c->ino);
    int fd = copy_of(c);
    if (fd < 0) return;
    SYS(ftruncate, fd, c->size);
    if (c->len) SYS(pwrite64, fd, c + 1, c->len, c->offset);
}

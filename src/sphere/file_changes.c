#include "sphere/file_changes.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/borrowed.h"
#include "sphere/code_files.h"
#include "sphere/contents.h"
#include "sphere/debug.h"
#include "sphere/debug_watch.h"
#include "sphere/event_log.h"
#include "sphere/gate.h"
#include "sphere/objects.h"
#include "sphere/page_log.h"
#include "sphere/shared.h"
#include "sphere/shared_left.h"
#include "sphere/sys/special.h"
#include "sphere/writers.h"

#define FILES_MAX 256
#define PIECE 32768u
#define HOLD_MOST (1ull << 30) /* bytes of a shared file that one call may change, in order with other processes */

struct known {
    uint64_t dev, ino;
    /* replay: */
    struct object_name name; /* what it contained at first */
    uint64_t object;         /* shared.h */
    uint64_t size;
    struct file_source copy; /* this process's own; fd 0: none */
    bool hollow;             /* it has only what has changed */
    int childs;              /* a copy of it, for a child that is about to be made; 0: none */
    bool in_channel;         /* its contents are there */
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

static void log_cut(struct thread *t, int fd);

void file_changes_opened(struct thread *t, long fd, uint64_t flags) {
    struct stat st;
    if (fd < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) || !is_regular(fd, &st)) return;
    add(&opened, st.st_dev, st.st_ino);
    if (is_mapped(st.st_dev, st.st_ino)) add(&changing, st.st_dev, st.st_ino);
    if (flags & O_TRUNC) log_cut(t, (int)fd);
    writers_opened(st.st_dev, st.st_ino);
}

void file_changes_share(struct thread *t) {
    struct mapping m;
    for (size_t i = 0; unlikely(changing.n) && aspace_nth(i, &m); i++)
        if (!m.shows_shared && (m.flags & MAP_TYPE) == MAP_PRIVATE && find(&changing, m.file.dev, m.file.ino))
            writers_told(t, m.file.dev, m.file.ino, EVF_AT_GATE);
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
    uint32_t birth; /* ev_change */
};

static bool has_changed;

bool file_changes_any(void) { return has_changed; }

static bool is_mapped_privately(uint64_t dev, uint64_t ino) {
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (m.file.ino == ino && m.file.dev == dev && (m.flags & MAP_TYPE) == MAP_PRIVATE) return true;
    return false;
}

/* What a checkpoint needs to know of a file that processes share. */
static void note_shared(const struct ev_change *v) {
    struct file_id id = {.dev = v->dev, .ino = v->ino, .birth = v->birth};
    if (v->len)
        left_written(shared_file(&id), v->offset, v + 1, v->len);
    else
        left_cut(shared_file(&id), v->size);
    has_changed |= !v->len && is_mapped_privately(v->dev, v->ino); /* what was behind the end there is gone, too */
}

static void log_piece(struct change *c, gaddr from, uint32_t len) {
    has_changed |= !c->birth;
    struct event *e = event_new(c->t, EV_CHANGE, 0, sizeof(struct ev_change) + len);
    struct ev_change *v = (struct ev_change *)(e + 1);
    memset((uint8_t *)e + e->size - 8, 0, 8);
    *v = (struct ev_change){.dev = c->st->st_dev,
                            .ino = c->st->st_ino,
                            .offset = c->at,
                            .size = (uint64_t)c->st->st_size,
                            .len = len,
                            .birth = c->birth};
    if (len && !guest_read(v + 1, from, len)) v->len = 0;
    if (c->birth) note_shared(v);
    if (!v->len) borrowed_cut(v->dev, v->ino, v->size);
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

/* Whether processes share the file; then *id is filled in. */
static bool is_shared_file(int fd, struct file_id *id) {
    return shared_has_files() && file_identify(fd, id) && shared_object_is_known(shared_file(id));
}

static uint64_t vector_bytes(gaddr v, uint64_t count) {
    uint64_t piece[2], n = 0;
    for (uint64_t i = 0; i < MIN(count, 1024ull) && guest_read(piece, v + 16 * i, 16); i++) n += piece[1];
    return n;
}

/* Where the call will write: at most *len bytes from *at on. */
static void changed_range(uint64_t nr, const uint64_t a[6], int fd, uint64_t size, uint64_t *at, uint64_t *len) {
    uint64_t out;
    bool appends = SYS(fcntl, fd, F_GETFL) & O_APPEND;
    *at = appends ? size : (uint64_t)SYS(lseek, fd, 0, 1 /* SEEK_CUR */);
    switch (nr) {
    case __NR_ftruncate:
        *at = a[1];
        *len = size > a[1] ? size - a[1] : 0;
        return;
    case __NR_fallocate:
        *at = a[2];
        *len = a[1] & ~1ull ? MIN(a[3], size > a[2] ? size - a[2] : 0) : 0;
        return;
    case __NR_pwrite64: *at = appends ? size : a[3]; /* fall through */
    case __NR_write: *len = a[2]; return;
    case __NR_pwritev:
    case __NR_pwritev2:
        if (!appends && (int64_t)a[3] != -1) *at = a[3]; /* fall through */
    case __NR_writev: *len = vector_bytes(a[1], a[2]); return;
    default: /* sendfile, splice, copy_file_range */
        *len = nr == __NR_sendfile ? a[3] : a[4];
        if (nr != __NR_sendfile && a[3] && guest_read(&out, a[3], 8)) *at = out;
    }
}

bool file_changes_hold(struct thread *t, uint64_t nr, const uint64_t a[6]) {
    int arg = changed_file(nr);
    struct file_id id;
    if (arg < 0 || !is_shared_file((int)a[arg], &id)) return false;
    uint64_t at, len;
    changed_range(nr, a, (int)a[arg], id.size, &at, &len);
    left_file(shared_file(&id), (int)a[arg]);
    shared_hold_file(t, shared_file(&id), at, MIN(len, HOLD_MOST));
    return true;
}

/* A file has been cut off by its name. */
static void log_cut(struct thread *t, int fd) {
    struct stat st;
    struct file_id id;
    if (!is_regular(fd, &st)) return;
    bool is_shared = is_shared_file(fd, &id);
    if (!is_shared && !find(&changing, st.st_dev, st.st_ino)) return;
    struct change c = {.t = t, .st = &st, .birth = is_shared ? id.birth : 0};
    log_piece(&c, 0, 0);
}

void file_changes_truncated(struct thread *t, gaddr path) {
    char name[4096];
    struct stat st;
    if (guest_read_string(name, path, sizeof name) < 0) return;
    long fd = SYS(openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return;
    log_cut(t, (int)fd);
    if (is_regular(fd, &st)) writers_cut(st.st_dev, st.st_ino);
    SYS(close, fd);
}

void file_changes_log(struct thread *t, uint64_t nr, const uint64_t a[6], long ret) {
    struct stat st;
    if (unlikely(nr == __NR_ftruncate) && ret == 0 && is_regular((int)a[0], &st)) writers_cut(st.st_dev, st.st_ino);
    if (likely(!changing.n && !shared_has_files()) || ret < 0) return;
    int arg = changed_file(nr);
    struct file_id id;
    if (arg < 0 || !is_regular((int)a[arg], &st)) return;
    bool is_shared = is_shared_file((int)a[arg], &id);
    if (!is_shared && !find(&changing, st.st_dev, st.st_ino)) return;
    if (is_shared) left_file(shared_file(&id), (int)a[arg]);
    struct change c = {.t = t, .st = &st, .birth = is_shared ? id.birth : 0};
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
        c.at = SYS(fcntl, fd, F_GETFL) & O_APPEND ? (uint64_t)st.st_size - n : a[3];
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

/* Bits of a word of /proc/self/pagemap: private memory that the program has written. */
#define PAGE_THERE (3ull << 62)
#define PAGE_OF_FILE (1ull << 61)

void file_changes_move_private(gaddr start, gaddr end, int prot, int fd, uint64_t offset) {
    long pagemap = SYS(openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t pages = (end - start) / PAGE_SIZE, n = 0;
    uint8_t *saved = arena_pages(end - start);
    uint32_t *which = arena_pages(pages * sizeof *which);
    SYS(mprotect, start, end - start, PROT_READ);
    for (size_t i = 0; i < pages && pagemap >= 0; i++) {
        uint64_t word = 0;
        SYS(pread64, pagemap, &word, 8, (start / PAGE_SIZE + i) * 8);
        if (!(word & PAGE_THERE) || (word & PAGE_OF_FILE)) continue;
        if (guest_copy(saved + n * PAGE_SIZE, (const void *)(start + i * PAGE_SIZE), PAGE_SIZE) == 0)
            which[n++] = (uint32_t)i;
    }
    if (pagemap >= 0) SYS(close, pagemap);
    SYS(mmap, start, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, offset);
    for (size_t i = 0; i < n; i++) memcpy((void *)(start + which[i] * PAGE_SIZE), saved + i * PAGE_SIZE, PAGE_SIZE);
    SYS(mprotect, start, end - start, prot);
    aspace_guard_again(start, end);
    arena_free_pages(saved, end - start);
    arena_free_pages(which, pages * sizeof *which);
}

/* What is executed was mapped by exec, from what was kept then, and nobody can write to it meanwhile. Whoever has written it before may
 * not have done so yet in this replay. */
static bool is_executed(const struct known *k) {
    return k->ino == the_runtime.exe_ino && k->dev == the_runtime.exe_dev;
}

static void move_mappings(const struct known *k, int fd, uint64_t base) {
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++) {
        if (m.runtime || m.tracked || m.file.ino != k->ino || m.file.dev != k->dev) continue;
        if ((m.flags & MAP_TYPE) == MAP_PRIVATE && !m.shows_shared && is_executed(k)) continue;
        if ((m.flags & MAP_TYPE) == MAP_PRIVATE)
            file_changes_move_private(m.start, m.end, m.borrowed ? PROT_NONE : aspace_host_prot((int)m.prot), fd,
                                      base + m.offset);
        else
            SYS(mmap, m.start, m.end - m.start, aspace_host_prot((int)m.prot), MAP_SHARED | MAP_FIXED, fd,
                base + m.offset);
    }
}

static struct file_id id_of(uint64_t dev, uint64_t ino, uint32_t birth) {
    return (struct file_id){.dev = dev, .ino = ino, .birth = birth};
}

static void drop_copy(struct known *k) {
    if (k->copy.fd && !debug_is_on) SYS(close, k->copy.fd);
    k->copy.fd = 0;
}

/* What others have done to the file while this process had it not mapped is in what was kept of it since. */
static void forget_old_copy(struct known *k, const struct object_name *now) {
    bool is_same = k->name.lo == now->lo && k->name.hi == now->hi;
    if (!k->copy.fd || is_same || is_mapped(k->dev, k->ino)) return;
    if (debug_is_on) contents_forget(k->object);
    drop_copy(k);
}

static struct known *note(const struct ev_mapped *v) {
    struct file_id id = id_of(v->dev, v->ino, MAPPED_BIRTH(v->flags));
    struct known *k = add(&mapped, v->dev, v->ino);
    if (k->object != shared_file(&id)) { /* another one that has the same inode */
        drop_copy(k);
        k->in_channel = false;
        k->object = shared_file(&id);
    }
    if (!(v->flags & MAPPED_TRACKED) && !k->in_channel) forget_old_copy(k, &v->object);
    k->name = v->object;
    k->size = v->size;
    return k;
}

/* In the channel, which all processes of the replay see; a worker has everything for itself. */
static struct file_source tracked_source(uint64_t object, const struct ev_mapped *first) {
    if (unlikely(debug_is_on)) return contents_of(object, first);
    return (struct file_source){fd_own() + 1, objects_tracked(object, first)};
}

/* The contents are in the channel from now on, for this process. */
static struct file_source enter_channel(struct known *k, const struct ev_mapped *first) {
    struct file_source s = tracked_source(k->object, first);
    if (!k->in_channel) {
        move_mappings(k, s.fd, s.base);
        drop_copy(k);
    }
    k->in_channel = true;
    return s;
}

/* What all mappings show of it comes from the log. */
static bool is_shown(uint64_t dev, uint64_t ino) {
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (m.file.ino == ino && m.file.dev == dev && !m.shows_shared) return false;
    return true;
}

static struct file_source copy_of(struct known *k) {
    if (!k->copy.fd) {
        struct ev_mapped v = {.object = k->name, .size = k->size};
        k->hollow = is_shown(k->dev, k->ino);
        if (k->hollow) v.object = (struct object_name){0, 0};
        k->copy = debug_is_on ? contents_of(k->object, &v) : (struct file_source){objects_copy(&v), 0};
        move_mappings(k, k->copy.fd, k->copy.base);
    }
    return k->copy;
}

static void fill_hollow(struct known *k, const struct ev_mapped *v) {
    contents_cut(k->copy, 0);
    objects_fill(k->copy.fd, k->copy.base, v);
    k->hollow = false;
}

/* Recording said so, too; whoever replays may not have seen it. */
static void say_missing(const struct ev_mapped *v) {
    static bool said;
    if (said || !v->ino || !v->size) return;
    said = true;
    say("this recording has not the contents of a file of %lu bytes that the program maps: they could not be kept",
        v->size);
}

uint64_t file_changes_object(const struct ev_mapped *v) {
    struct file_id id = id_of(v->dev, v->ino, MAPPED_BIRTH(v->flags));
    return shared_file(&id);
}

struct file_source file_changes_source(const struct ev_mapped *v) {
    struct known *k = note(v);
    if ((v->flags & MAPPED_TRACKED) || k->in_channel)
        return enter_channel(k, (v->flags & MAPPED_FIRST) || debug_is_on ? v : NULL);
    if (k->copy.fd && k->hollow && !(v->flags & MAPPED_BORROWED)) fill_hollow(k, v);
    if (k->copy.fd) return k->copy;
    bool is_kept = v->object.lo || v->object.hi;
    if (!is_kept) say_missing(v);
    return (struct file_source){is_kept ? objects_open_kept(&v->object) : -1, 0};
}

/* Copies of files have no end of their own: there may be others behind them, in the channel or in a worker's memory. */
static void change_in_place(struct file_source s, const struct ev_change *c) {
    if (!c->len) contents_cut(s, c->size);
    if (c->len && c->offset < SHARED_ROOM && c->len <= SHARED_ROOM - c->offset)
        SYS(pwrite64, s.fd, c + 1, c->len, s.base + c->offset);
}

/* So the kernel does not know that what the program wrote behind it in private mappings goes, too. */
static void drop_private_behind(const struct ev_change *c) {
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++) {
        if (m.runtime || m.file.ino != c->ino || m.file.dev != c->dev || (m.flags & MAP_TYPE) != MAP_PRIVATE) continue;
        uint64_t end = PAGE_UP(c->size);
        gaddr from = m.start + (end > m.offset ? end - m.offset : 0);
        if (from < m.end) SYS(madvise, from, m.end - from, MADV_DONTNEED);
    }
}

void file_changes_apply(const struct ev_change *c) {
    code_files_changed(c->dev, c->ino);
    struct known *k = find(&mapped, c->dev, c->ino);
    if (c->birth) {
        struct file_id id = id_of(c->dev, c->ino, c->birth);
        if (!c->len) page_log_forget();
        change_in_place(tracked_source(shared_file(&id), NULL), c);
    } else if (k && !k->in_channel) {
        change_in_place(copy_of(k), c);
    }
    if (k && !c->len) drop_private_behind(c);
    if (!c->len) borrowed_cut(c->dev, c->ino, c->size);
    if (unlikely(debug_is_on)) watch_remap();
}

void file_changes_shown(void) {
    for (size_t i = 0; i < mapped.n; i++) {
        struct known *k = &mapped.list[i];
        if (!k->copy.fd || k->hollow || !is_shown(k->dev, k->ino)) continue;
        contents_cut(k->copy, 0);
        k->hollow = true;
    }
}

void file_changes_grow(uint64_t dev, uint64_t ino) {
    struct known *k = find(&mapped, dev, ino);
    if (k && !k->in_channel) copy_of(k);
}

/* ---- forks ---- */

void file_changes_before_fork(void) {
    for (size_t i = 0; i < mapped.n; i++) {
        struct known *k = &mapped.list[i];
        if (!k->copy.fd || !is_mapped(k->dev, k->ino)) continue;
        k->childs = objects_copy(&(struct ev_mapped){0});
        contents_copy(k->copy.fd, k->childs);
    }
}

void file_changes_after_fork(bool is_child) {
    for (size_t i = 0; i < mapped.n; i++) {
        struct known *k = &mapped.list[i];
        int given = k->childs;
        k->childs = 0;
        if (is_child && k->copy.fd) {
            drop_copy(k);
            if (given) move_mappings(k, given, 0);
            k->copy.fd = given;
        } else if (given) {
            SYS(close, given);
        }
    }
}

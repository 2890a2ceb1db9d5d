#include "sphere/objects.h"

#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <linux/time_types.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/borrowed.h"
#include "sphere/channel.h"
#include "sphere/event_log.h"
#include "sphere/replay_parts.h"
#include "sphere/runtime.h"
#include "sphere/shared.h"
#include "sphere/shared_left.h"
#include "sphere/signals.h"
#include "sphere/sys/special.h"
#include "sphere/writers.h"

#define PROBES 64
#define LARGE (1ull << 30) /* such a file takes so long to keep that it is worth a look whether that is needed */

/* ---- recording ---- */

/* Contents that are all zero need no memory. */
static bool is_zero(const uint64_t *p, long n) {
    for (long i = 0; i < (n + 7) / 8; i++)
        if (p[i]) return false;
    return true;
}

static bool is_same(const struct channel_file *f, const struct file_id *id) {
    return f->dev == id->dev && f->ino == id->ino && f->size == id->size && f->mtime_ns == id->mtime_ns &&
           f->ctime_ns == id->ctime_ns;
}

/* The entry of a file; NULL: the table has none. Processes that map it at the same moment may have made one each: one that is kept
 * goes before others. */
static struct channel_file *find(const struct file_id *id) {
    uint32_t slot = channel_file_slot(id->dev, id->ino, id->mtime_ns);
    struct channel_file *found = NULL;
    for (uint32_t k = 0; k < PROBES; k++) {
        struct channel_file *f = &the_channel->files[(slot + k) % CHANNEL_FILES];
        uint32_t state = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE);
        if (state == FILE_FREE) break;
        if (!is_same(f, id)) continue;
        if (state == FILE_KEPT) return f;
        if (!found) found = f;
    }
    return found;
}

static struct channel_file *claim(const struct file_id *id) {
    uint32_t slot = channel_file_slot(id->dev, id->ino, id->mtime_ns);
    for (uint32_t k = 0; k < PROBES; k++) {
        struct channel_file *f = &the_channel->files[(slot + k) % CHANNEL_FILES];
        uint32_t expected = FILE_FREE;
        if (!__atomic_compare_exchange_n(&f->state, &expected, FILE_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        f->dev = id->dev;
        f->ino = id->ino;
        f->size = id->size;
        f->mtime_ns = id->mtime_ns;
        f->ctime_ns = id->ctime_ns;
        return f;
    }
    return NULL;
}

static bool send(int fd, struct channel_file *f) {
    struct channel_file_message message = {.entry = (uint32_t)(f - the_channel->files)};
    struct {
        uint64_t len;
        int32_t level, type, fd, pad;
    } control = {20, 1 /* SOL_SOCKET */, 1 /* SCM_RIGHTS */, fd, 0};
    struct {
        void *base;
        uint64_t len;
    } iov = {&message, sizeof message};
    struct {
        void *name;
        uint64_t name_len;
        void *iov;
        uint64_t iov_len;
        void *control;
        uint64_t control_len;
        uint64_t flags;
    } msg = {0, 0, &iov, 1, &control, sizeof control, 0};
    long ret;
    do ret = SYS(sendmsg, fd_own() + 2, &msg, 0x4000 /* MSG_NOSIGNAL */);
    while (ret == -EINTR);
    return ret == sizeof message;
}

/* Nobody will see what is in the file. */
static bool process_is_dying(void) {
    const struct thread *self = thread_self();
    for (const struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use && t->process == self->process && signals_will_kill(t)) return true;
    return false;
}

/* Large files take long. is_sent: by this process; another one may have been killed before it came to that. */
static void wait_until_kept(struct channel_file *f, int fd, bool is_sent) {
    while (__atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == FILE_BUSY) {
        struct __kernel_timespec timeout = {0, 200000000};
        long ret = SYS(futex, &f->state, FUTEX_WAIT, FILE_BUSY, &timeout, 0, 0);
        if (__atomic_load_n(&the_channel->stopped, __ATOMIC_ACQUIRE) || !channel_controller_lives()) return;
        if (process_is_dying()) return;
        if (ret == -ETIMEDOUT && !is_sent) is_sent = send(fd, f);
    }
}

/* memfd_secret(): cannot be read but where it is mapped; like all new memory it is zero to begin with. */
static bool is_secret(int fd) {
    struct statfs fs;
    return SYS(fstatfs, fd, &fs) == 0 && fs.f_type == SECRETMEM_MAGIC;
}

/* Pages of a file that is one hole are zero to begin with, whatever its size; what others have mapped before comes from them. */
static bool needs_no_contents(int fd, const struct file_id *id) {
    struct stat st;
    if (is_secret(fd)) return true;
    if (id->size < LARGE) return false;
    if (SYS(fstat, fd, &st) == 0 && st.st_blocks == 0) return true;
    return id->size > SHARED_ROOM && shared_object_is_known(shared_file(id));
}

void objects_keep(int fd, const struct file_id *id, bool tracked) {
    if (!id->ino || __atomic_load_n(&the_channel->stopped, __ATOMIC_ACQUIRE)) return;
    if (tracked && needs_no_contents(fd, id)) return;
    struct channel_file *f = find(id);
    bool is_new = !f;
    if (is_new) {
        f = claim(id);
        if (!f || !send(fd, f)) {
            if (f) __atomic_store_n(&f->state, FILE_FAILED, __ATOMIC_RELEASE);
            if (channel_controller_lives())
                say("a mapped file could not be kept: this recording will not replay beyond here");
            return;
        }
    }
    wait_until_kept(f, fd, is_new);
    f->reserved = 1; /* used by this recording */
}

struct object_name objects_name(const struct file_id *id) {
    struct channel_file *f = find(id);
    return f && __atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == FILE_KEPT ? f->name : (struct object_name){0, 0};
}

/* Who maps a file first has all of it. */
static uint64_t first_mapping(struct thread *t, const struct mapping *m, uint64_t size, int fd) {
    bool is_first = false;
    shared_object_slot(m->object, &is_first);
    if (!is_first && (m->prot & PROT_WRITE)) shared_keep_from_outsiders(m->object);
    if (!is_first) return 0;
    if (shared_is_for_outsiders(fd, m)) return shared_leave_to_outsiders(m->object), MAPPED_FIRST;
    if (!shared_claim_file(t, m->object, size)) return MAPPED_FIRST;
    shared_own(m->object, PAGE_UP(size) / PAGE_SIZE);
    return MAPPED_FIRST | MAPPED_OWNED;
}

/* Since its contents were kept, or would have been. */
static bool has_changed(const struct mapping *m, int fd) {
    struct file_id now;
    return file_identify(fd, &now) && now.ino == m->file.ino &&
           (now.size != m->file.size || now.mtime_ns != m->file.mtime_ns || now.ctime_ns != m->file.ctime_ns);
}

/* A private mapping, new, of a file that others change, or may change at any time. */
static uint64_t show_private(const struct mapping *m, int fd) {
    uint64_t ino, object = shared_file(&m->file);
    bool is_tracked = shared_has_files() && shared_object_is_known(object);
    bool is_anonymous =
        FILE_IS_ON_NO_DEVICE(m->file.dev) && file_is_anonymous(fd, &ino); /* shared, but not as a file */
    if (!is_tracked && !is_anonymous && !writers_has(&m->file) && !has_changed(m, fd)) return 0;
    borrowed_show_new(m);
    return is_tracked ? MAPPED_TRACKED : MAPPED_BORROWED;
}

/* What a System V segment holds that was there before the recording. */
static void log_segment(struct thread *t, const struct mapping *m) {
    for (gaddr page = m->start; page < m->end; page += PAGE_SIZE)
        if (!is_zero((const uint64_t *)page, PAGE_SIZE)) event_memory(t, EV_MEMORY, page, PAGE_SIZE, false);
}

/* The last page of a file can hold something behind the file's end: what was stored there through mappings. read() does not
 * show it to who keeps the file, but the program sees it (libfaketime's clock is there). */
static void log_behind_end(struct thread *t, const struct mapping *m) {
    uint64_t last = PAGE_DOWN(m->file.size), in_page = m->file.size - last;
    if (!in_page || !(m->prot & PROT_READ) || last < m->offset || last - m->offset >= m->end - m->start) return;
    gaddr page = m->start + (last - m->offset);
    static const char zeroes[PAGE_SIZE];
    if (memcmp((const char *)page + in_page, zeroes, PAGE_SIZE - in_page) != 0)
        event_memory(t, EV_MEMORY, page, PAGE_SIZE, false), left_seen(page);
}

struct ev_map objects_map_of(const struct mapping *m) {
    struct ev_map v = {.start = m->start,
                       .end = m->end,
                       .offset = m->offset,
                       .prot = m->prot | (m->was_writable ? MAP_UNSURE : 0),
                       .flags = m->flags,
                       .dev = m->file.dev,
                       .ino = m->file.ino,
                       .size = m->file.size,
                       .mtime_ns = m->file.mtime_ns,
                       .ctime_ns = m->file.ctime_ns};
    memcpy(v.name, m->name, sizeof v.name);
    if (m->file.ino) v.object = objects_name(&m->file);
    return v;
}

void objects_log_mapped(struct thread *t, uint64_t nr, const uint64_t a[6], long ret) {
    bool is_anonymous = nr == __NR_mmap && (a[3] & MAP_ANONYMOUS);
    struct mapping m;
    if (sys_failed(ret) || is_anonymous || !aspace_find((gaddr)ret, &m)) return;
    int fd = nr == __NR_mmap ? (int)a[4] : -1;
    uint64_t size = nr == __NR_shmat ? m.end - m.start : m.file.size;
    struct event *e = event_new(t, EV_MAPPED, 0, sizeof(struct ev_mapped));
    struct ev_mapped *v = (struct ev_mapped *)(e + 1);
    *v = (struct ev_mapped){.dev = m.file.dev,
                            .ino = m.file.ino,
                            .size = size,
                            .mtime_ns = m.file.mtime_ns,
                            .ctime_ns = m.file.ctime_ns,
                            .flags = (uint64_t)m.file.birth << 32 | (m.was_writable ? MAPPED_UNSURE : 0)};
    if (m.flags & MAP_ANONYMOUS) v->flags |= MAPPED_ANONYMOUS;
    if ((m.flags & MAP_ANONYMOUS) && (m.flags & MAP_TYPE) == MAP_PRIVATE) v->flags |= MAPPED_PRIVATE;
    bool is_shared = (m.flags & MAP_TYPE) != MAP_PRIVATE;
    if (nr == __NR_mmap && (m.flags & MAP_ANONYMOUS) && is_shared && !file_is_zero(fd)) {
        v->flags |= MAPPED_AGAIN;
        v->ino = m.object;
    }
    if (nr == __NR_mmap) v->object = objects_name(&m.file);
    if ((m.flags & MAP_TYPE) == MAP_PRIVATE && m.file.ino) v->flags |= show_private(&m, fd);
    if (!m.tracked || (m.flags & MAP_ANONYMOUS)) return;
    v->flags |= MAPPED_TRACKED | first_mapping(t, &m, size, fd);
    borrowed_show_shared(m.object);
    left_object(m.object, v, shared_is_in_memory(fd), m.was_writable || nr != __NR_mmap);
    if (!(v->flags & MAPPED_OWNED)) return;
    if (nr != __NR_shmat)
        log_behind_end(t, &m);
    else if (m.file.mtime_ns)
        log_segment(t, &m); /* it is in use */
}

/* ---- replay ---- */

static void store_path(const struct object_name *name, char *out, size_t cap) {
    char hex[40];
    fmt_into(hex, sizeof hex, "%016lx%016lx", name->hi, name->lo);
    fmt_into(out, cap, "%s/%c%c/%s", the_runtime.store, hex[0], hex[1], hex + 2);
}

int objects_open(const struct object_name *name) {
    char path[sizeof the_runtime.store + 48];
    store_path(name, path, sizeof path);
    long fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) die("the recording needs %s, which cannot be opened (error %ld)", path, -fd);
    return (int)fd;
}

/* Neighbouring mappings of one open file are one for the kernel, and mremap takes them as one: so a file that is mapped again and
 * again stays open. */
#define OPEN_KEPT 8

int objects_open_kept(const struct object_name *name) {
    static struct {
        struct object_name name;
        int fd;
    } kept[OPEN_KEPT];
    static size_t oldest;
    for (size_t i = 0; i < OPEN_KEPT; i++)
        if (kept[i].fd && kept[i].name.lo == name->lo && kept[i].name.hi == name->hi) return kept[i].fd;
    size_t i = oldest++ % OPEN_KEPT;
    if (kept[i].fd) SYS(close, kept[i].fd);
    kept[i].name = *name;
    return kept[i].fd = objects_open(name);
}

/* The next bytes of the file from *at on that are no hole. False: there are none. */
static bool next_data(int fd, uint64_t *at, uint64_t *end) {
    long data = SYS(lseek, fd, *at, SEEK_DATA);
    if (data < 0) return false;
    long hole = SYS(lseek, fd, data, SEEK_HOLE);
    *at = (uint64_t)data;
    *end = hole < 0 ? UINT64_MAX : (uint64_t)hole;
    return true;
}

void objects_fill(int to, uint64_t base, const struct ev_mapped *m) {
    static uint64_t piece[65536 / 8];
    if (!m->object.lo && !m->object.hi) return;
    int from = objects_open(&m->object);
    for (uint64_t at = 0, end; next_data(from, &at, &end);)
        for (long n; at < end; at += (uint64_t)n) {
            memset(piece, 0, sizeof piece);
            n = SYS(pread64, from, piece, MIN(sizeof piece, end - at), at);
            if (n <= 0) die("an object of the store cannot be read (error %ld)", -n);
            if (!is_zero(piece, n) && SYS(pwrite64, to, piece, n, base + at) != n) die("no memory for a shared file");
        }
    SYS(close, from);
}

/* Whoever had it first fills it in, the others wait for that. */
uint64_t objects_tracked(uint64_t object, const struct ev_mapped *first) {
    bool is_new;
    if (!shared_tables()) die("no memory can be shared by the processes of this replay");
    uint64_t slot = shared_object_slot(object, &is_new);
    if (slot == SHARED_OBJECTS) die("more than %d shared files are mapped", (int)SHARED_OBJECTS);
    struct shared_object *o = &shared_tables()->objects[slot];
    if (first) {
        objects_fill(fd_own() + 1, SHARED_CONTENTS(slot), first);
        __atomic_store_n(&o->ready, 1, __ATOMIC_RELEASE);
        SYS(futex, &o->ready, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
    }
    for (int i = 0; !__atomic_load_n(&o->ready, __ATOMIC_ACQUIRE); i++) {
        struct __kernel_timespec timeout = {0, 100000000};
        if (i == 20 && __atomic_load_n(&shared_tables()->cut, __ATOMIC_ACQUIRE))
            replay_cut_off(); /* who did was not recorded */
        if (i == 1200) die("nobody fills in a shared file");
        SYS(futex, &o->ready, FUTEX_WAIT, 0, &timeout, 0, 0);
    }
    return SHARED_CONTENTS(slot);
}

int objects_copy(const struct ev_mapped *m) {
    long fd = SYS(memfd_create, "reprise", 1 /* MFD_CLOEXEC */);
    if (fd < 0 || SYS(ftruncate, fd, SHARED_ROOM) != 0) die("no memory for a copy of a file of %lu bytes", m->size);
    objects_fill((int)fd, 0, m);
    return (int)fd;
}

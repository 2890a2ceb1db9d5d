#include "sphere/writers.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/stat.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/borrowed.h"
#include "sphere/channel.h"
#include "sphere/event_log.h"
#include "sphere/gate.h"
#include "sphere/trace_table.h"

struct file_name {
    uint64_t dev, ino;
};

/* ---- bits ---- */

static uint64_t hash(uint64_t dev, uint64_t ino) {
    uint64_t h = dev * 0x9e3779b97f4a7c15ull ^ ino * 0xc2b2ae3d27d4eb4full;
    return h ^ h >> 29;
}

/* Most are set already: the cache line is not to be written each time. */
static void set_bit(uint64_t *bits, uint64_t n, uint64_t h) {
    uint64_t *word = &bits[h % (n * 64) / 64], bit = 1ull << h % (n * 64) % 64;
    if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
}

static bool has_bit(const uint64_t *bits, uint64_t n, uint64_t h) {
    return __atomic_load_n(&bits[h % (n * 64) / 64], __ATOMIC_SEQ_CST) >> h % (n * 64) % 64 & 1;
}

static struct ring *own_ring(void) {
    return the_stream.ring < CHANNEL_RINGS ? &the_channel->rings[the_stream.ring] : NULL;
}

static void note(const struct file_id *id) {
    uint64_t h = hash(id->dev, id->ino);
    struct ring *r = own_ring();
    if (r) set_bit(r->maps, RING_MAPS, h);
    set_bit(the_channel->mapped, CHANNEL_BITS, h);
}

void writers_start(void) {
    struct ring *r = own_ring();
    struct mapping m;
    if (r) memset(r->maps, 0, sizeof r->maps);
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (!m.runtime && m.file.ino && (m.flags & MAP_TYPE) == MAP_PRIVATE) note(&m.file);
}

void writers_fork(uint32_t ring) {
    struct ring *r = own_ring();
    if (r && ring < CHANNEL_RINGS) memcpy(the_channel->rings[ring].maps, r->maps, sizeof r->maps);
}

void writers_map(const struct file_id *id) {
    if (id->ino) note(id);
}

/* ---- who has a file open for writing ---- */

/* fdinfo: "pos:\t0\nflags:\t0100001\n..." */
static bool is_for_writing(const char *fdinfo) {
    char text[128];
    long file = SYS(openat, AT_FDCWD, fdinfo, O_RDONLY | O_CLOEXEC);
    long n = file >= 0 ? SYS(read, file, text, sizeof text - 1) : 0;
    if (file >= 0) SYS(close, file);
    if (n <= 0) return false;
    text[n] = '\0';
    const char *line = strchr(text, '\n');
    if (!line || !str_starts(line, "\nflags:\t")) return false;
    uint64_t flags = 0;
    for (line += 8; *line >= '0' && *line <= '7'; line++) flags = flags * 8 + (uint64_t)(*line - '0');
    return (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
}

static bool is_open_as(uint32_t pid, const char *number, const struct file_id *id) {
    char path[64];
    struct stat st;
    fmt_into(path, sizeof path, "/proc/%d/fd/%s", (int)pid, number);
    if (SYS(newfstatat, AT_FDCWD, path, &st, 0) != 0 || st.st_ino != id->ino || st.st_dev != id->dev) return false;
    fmt_into(path, sizeof path, "/proc/%d/fdinfo/%s", (int)pid, number);
    return is_for_writing(path);
}

/* A process whose descriptors cannot be seen may have it, too. */
static bool process_has(uint32_t pid, const struct file_id *id) {
    static uint8_t records[4096] __attribute__((aligned(8)));
    char path[32];
    fmt_into(path, sizeof path, "/proc/%d/fd", (int)pid);
    long dir = SYS(openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = dir == -EACCES;
    for (long n; dir >= 0 && !found && (n = SYS(getdents64, dir, records, sizeof records)) > 0;)
        for (long at = 0; !found && at < n;) { /* struct linux_dirent64: ino, off, u16 length, u8 type, name */
            const char *name = (const char *)records + at + 19;
            found = name[0] != '.' && is_open_as(pid, name, id);
            at += *(const uint16_t *)(records + at + 16);
        }
    if (dir >= 0) SYS(close, dir);
    return found;
}

/* The next ring of another process that is in use, from number *i on; 0: none. Processes of different PID namespaces do not know
 * each other's numbers. */
static uint32_t next_process(uint32_t *i) {
    const struct ring *own = own_ring();
    if (own && own->elsewhere) return 0;
    for (; *i < MIN(the_channel->n_rings, CHANNEL_RINGS); ++*i) {
        const struct ring *r = &the_channel->rings[*i];
        uint32_t pid = __atomic_load_n(&r->pid, __ATOMIC_ACQUIRE);
        bool is_open = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == RING_OPEN;
        if (is_open && pid && !r->elsewhere && *i != the_stream.ring) return pid;
    }
    return 0;
}

bool writers_has(const struct file_id *id) {
    if (likely(!has_bit(the_channel->written, CHANNEL_BITS, hash(id->dev, id->ino)))) return false;
    uint32_t pid, self = (uint32_t)SYS(getpid);
    for (uint32_t i = 0; (pid = next_process(&i)); i++)
        if (pid != self && process_has(pid, id)) return true;
    return false;
}

/* ---- telling ---- */

bool writers_due;
static struct file_name due[16];
static uint32_t n_due;

void writers_cut(uint64_t dev, uint64_t ino) {
    if (likely(!has_bit(the_channel->mapped, CHANNEL_BITS, hash(dev, ino)))) return;
    if (n_due && due[n_due - 1].dev == dev && due[n_due - 1].ino == ino) return;
    if (n_due < ARRAY_LEN(due)) due[n_due++] = (struct file_name){dev, ino};
    writers_due = true;
}

void writers_opened(uint64_t dev, uint64_t ino) {
    set_bit(the_channel->written, CHANNEL_BITS, hash(dev, ino));
    writers_cut(dev, ino);
}

/* Shared mappings need no further call to be written to. */
static bool foresee_mapping(const uint64_t a[6]) {
    struct stat st;
    if ((a[3] & MAP_ANONYMOUS) || (a[3] & MAP_TYPE) == MAP_PRIVATE || !(a[2] & PROT_WRITE)) return false;
    if (SYS(fstat, a[4], &st) != 0 || (st.st_mode & S_IFMT) != S_IFREG) return false;
    writers_opened(st.st_dev, st.st_ino);
    return writers_due;
}

bool writers_foresee(uint64_t nr, const uint64_t a[6]) {
    if (nr == __NR_mmap) return foresee_mapping(a);
    char name[4096];
    struct stat st;
    uint64_t flags = nr == __NR_open ? a[1] : nr == __NR_openat ? a[2] : O_WRONLY | O_TRUNC;
    bool is_at = nr == __NR_openat;
    if (!(flags & O_TRUNC) || guest_read_string(name, is_at ? a[1] : a[0], sizeof name) < 0) return false;
    if (SYS(newfstatat, is_at ? (int)a[0] : AT_FDCWD, name, &st, 0) != 0 || (st.st_mode & S_IFMT) != S_IFREG)
        return false;
    writers_cut(st.st_dev, st.st_ino);
    return writers_due;
}

void writers_tell(struct thread *t) {
    uint32_t self = (uint32_t)SYS(getpid), pid;
    writers_due = false;
    while (n_due) {
        struct file_name name = due[--n_due];
        uint64_t h = hash(name.dev, name.ino);
        for (uint32_t i = 0; (pid = next_process(&i)); i++)
            if (pid != self && has_bit(the_channel->rings[i].maps, RING_MAPS, h))
                trace_write((int)pid, LETTER_CHANGES, 0, &name, sizeof name);
    }
}

/* ---- being told ---- */

/* The number that the file has as an object here; 0: it is not mapped privately. */
static uint64_t object_of(uint64_t dev, uint64_t ino) {
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (m.file.ino == ino && m.file.dev == dev && (m.flags & MAP_TYPE) == MAP_PRIVATE && !m.runtime)
            return shared_file(&m.file);
    return 0;
}

void writers_told(struct thread *t, uint64_t dev, uint64_t ino, uint8_t flags) {
    uint64_t object = object_of(dev, ino);
    if (!object || !shared_tables()) return;
    struct event *e = event_new(t, EV_POKE, POKE_BORROWS, sizeof(struct ev_memory));
    *(struct ev_memory *)(e + 1) = (struct ev_memory){.addr = object};
    e->flags = flags;
    stream_commit();
    borrowed_show(object);
}

#include "sphere/code_files.h"

#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/magic.h>
#include <linux/mman.h>

#include "engine/cache.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/code_watch.h"
#include "sphere/mode.h"
#include "sphere/sys/special.h"

#define MAX_FILES 1024 /* further ones are taken for loose */
#define S_IFMT_ 0170000
#define S_IFREG_ 0100000
#define MEM_FILE_MODE 0100600 /* /proc/PID/mem; nothing else there that can be written has this mode */

struct code_file {
    uint64_t dev, ino;
    bool loose;
};

bool code_files_mem_open;
static uint64_t mem_dev;
static struct code_file files[MAX_FILES];
static size_t n_files, last;

static struct code_file *find(uint64_t dev, uint64_t ino) {
    if (last < n_files && files[last].ino == ino && files[last].dev == dev) return &files[last];
    for (size_t i = 0; i < n_files; i++)
        if (files[i].ino == ino && files[i].dev == dev) {
            last = i;
            return &files[i];
        }
    return NULL;
}

static struct code_file *add(uint64_t dev, uint64_t ino) {
    if (n_files == MAX_FILES) return NULL;
    files[n_files] = (struct code_file){dev, ino, false};
    return &files[n_files++];
}

bool code_files_is_loose(const struct mapping *m) {
    if (!m->file.ino && !m->file.dev) return false;
    struct code_file *f = find(m->file.dev, m->file.ino);
    if (!f) f = add(m->file.dev, m->file.ino);
    return !f || f->loose;
}

/* Caller holds cache_lock. */
static void loosen_found(struct code_file *f) {
    if (!f->loose) code_watch_forget(0, LAYOUT_GUEST_END); /* rare: not worth finding its mappings */
    f->loose = true;
}

static void loosen(uint64_t dev, uint64_t ino) {
    lock_take(&cache_lock);
    struct code_file *f = find(dev, ino);
    if (f)
        loosen_found(f);
    else if ((f = add(dev, ino)))
        f->loose = true;
    lock_drop(&cache_lock);
}

static bool is_mapped(uint64_t dev, uint64_t ino) {
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (m.file.ino == ino && m.file.dev == dev) return true;
    return false;
}

/* Opened for writing. A file whose code is gone, or another one that got its inode, starts afresh. */
static void reopened(uint64_t dev, uint64_t ino) {
    lock_take(&cache_lock);
    struct code_file *f = find(dev, ino); /* stays where it is */
    lock_drop(&cache_lock);
    if (!f) return;
    bool still_mapped = is_mapped(dev, ino); /* takes the lock */
    lock_take(&cache_lock);
    if (still_mapped)
        loosen_found(f);
    else
        f->loose = false;
    lock_drop(&cache_lock);
}

static bool is_mem_file(int fd, const struct stat *st) {
    struct statfs fs;
    return st->st_mode == MEM_FILE_MODE && SYS(fstatfs, fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* /proc/PID/mem or /proc/PID/task/TID/mem of this process. */
static bool is_own_mem(long fd) {
    char link[40], path[64], own[32];
    fmt_into(link, sizeof link, "/proc/self/fd/%ld", fd);
    long n = SYS(readlink, link, path, sizeof path - 1);
    if (n <= 0) return false;
    path[n] = '\0';
    fmt_into(own, sizeof own, "/proc/%ld/", SYS(getpid));
    return str_starts(path, own);
}

static long refuse_mem(long fd) {
    static bool said;
    if (!said) say("the memory of a process outside cannot be written while recording: refused");
    said = true;
    SYS(close, fd);
    return -EACCES;
}

long code_files_opened(long fd, uint64_t flags) {
    struct stat st;
    if (fd < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH)) return fd;
    if (SYS(fstat, fd, &st) != 0 || (st.st_mode & S_IFMT_) != S_IFREG_) return fd;
    if (is_mem_file((int)fd, &st)) {
        if (the_mode->own_memory_only && !is_own_mem(fd) && !foreign_memory_owner((int)fd)) return refuse_mem(fd);
        mem_dev = st.st_dev;
        code_files_mem_open = true;
    }
    reopened(st.st_dev, st.st_ino);
    return fd;
}

void code_files_mapped(int fd, int prot, int flags) {
    bool shared = (flags & MAP_TYPE) != MAP_PRIVATE;
    if ((flags & MAP_ANONYMOUS) || !((prot & PROT_EXEC) || (shared && (prot & PROT_WRITE)))) return;
    long mode = SYS(fcntl, fd, F_GETFL);
    struct stat st;
    if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY || SYS(fstat, fd, &st) != 0) return;
    if ((prot & PROT_EXEC) || n_files < MAX_FILES / 2) loosen(st.st_dev, st.st_ino);
}

bool code_files_mem_range(int fd, int64_t pos, size_t n, gaddr *start) {
    struct stat st;
    if (!code_files_mem_open || SYS(fstat, fd, &st) != 0 || st.st_dev != mem_dev || st.st_mode != MEM_FILE_MODE)
        return false;
    if (pos == -1) pos = SYS(lseek, fd, 0, 1 /* SEEK_CUR */) - (long)n;
    *start = (gaddr)pos;
    return true;
}

void code_files_changed(uint64_t dev, uint64_t ino) { loosen(dev, ino); }

void code_files_written(int fd, int64_t where, size_t n) {
    gaddr pos;
    if (!code_files_mem_range(fd, where, n, &pos)) return;
    lock_take(&cache_lock);
    aspace_note_changed(pos, pos + n);
    code_watch_forget((gaddr)pos, (gaddr)pos + n);
    lock_drop(&cache_lock);
}

#include "engine/kept_dir.h"

#include <linux/fcntl.h>

#include "engine/kept_mark.h"
#include "engine/policy.h"
#include "inproc/fmt.h"
#include "inproc/hash.h"
#include "inproc/str.h"
#include "inproc/sys.h"

#define NAME_LEN 17
#define TEMP_PREFIX ".new-"
#define TEMP_OLD 120 /* seconds: whoever wrote it is gone */
#define RLIMIT_FSIZE_ 1
#define UNUSED_LONG 172800 /* seconds: many file systems note a use once a day */
#define LIMIT_LEAST (512ul << 20)
#define LIMIT_MOST (4ul << 30)
#define FULL_NOTE "full" /* says by its time when somebody looked at all files and found no room */
#define FULL_FOR 60      /* seconds */

static char dir[512];
static uint64_t build_id;
static uint64_t dir_limit; /* 0: what the disk allows */

void kept_dir_start(const char *path, uint64_t build) {
    build_id = build;
    if (path) fmt_into(dir, sizeof dir, "%s", path);
}

bool kept_dir_is_there(void) { return dir[0]; }
uint64_t kept_dir_build(void) { return build_id; }
void kept_dir_set_limit(uint64_t bytes) { dir_limit = bytes; }

void kept_dir_name(char name[KEPT_NAME], uint64_t hash) { fmt_into(name, KEPT_NAME, "%s/%016lx", dir, hash); }

long kept_dir_open(const char *name, struct stat *st) {
    long fd = SYS(openat, AT_FDCWD, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return fd;
    if (SYS(fstat, fd, st) != 0 || (st->st_mode & 0170000) != 0100000 || (st->st_mode & 022) ||
        st->st_uid != (uint32_t)SYS(geteuid)) {
        SYS(close, fd);
        return -EACCES;
    }
    return fd;
}

/* ---- writing ---- */

/* An eighth of what is free on the disk, within bounds: the images of one browser take 250 MB, of one compiler 60. */
static uint64_t limit(void) {
    struct {
        uint64_t type, block, blocks, free, available, more[10];
    } fs;
    if (dir_limit) return dir_limit;
    if (SYS(statfs, dir, &fs) != 0) return LIMIT_LEAST;
    return MAX(LIMIT_LEAST, MIN(LIMIT_MOST, fs.available * fs.block / 8));
}

/* Larger files raise SIGXFSZ, which is the program's business. */
bool kept_dir_may_write(uint64_t bytes) {
    uint64_t most[2];
    return bytes <= limit() && SYS(prlimit64, 0, RLIMIT_FSIZE_, 0, most) == 0 && bytes <= most[0];
}

static long create(const char *temp) {
    return SYS(openat, AT_FDCWD, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

bool kept_dir_begin(struct kept_writer *w) {
    fmt_into(w->temp, sizeof w->temp, "%s/" TEMP_PREFIX "%d", dir, (int)SYS(gettid));
    w->failed = false;
    w->fd = create(w->temp);
    if (w->fd == -EEXIST) { /* left behind by a process that was killed */
        SYS(unlink, w->temp);
        w->fd = create(w->temp);
    }
    return w->fd >= 0;
}

void kept_dir_put(struct kept_writer *w, const void *from, size_t bytes, uint64_t offset) {
    for (const uint8_t *p = from; bytes && !w->failed;) {
        long got = SYS(pwrite64, w->fd, p, bytes, offset);
        w->failed = got <= 0;
        if (w->failed) return;
        p += got;
        bytes -= (size_t)got;
        offset += (uint64_t)got;
    }
}

void kept_dir_end(struct kept_writer *w, const char *name, uint64_t checksum) {
    kept_mark((int)w->fd, NULL, checksum);
    SYS(close, w->fd);
    if (w->failed || SYS(rename, w->temp, name) != 0) SYS(unlink, w->temp);
}

/* ---- how much there is ---- */

struct file {
    uint64_t size, used; /* used: when, in seconds */
    char name[NAME_LEN];
};

static int64_t seconds_now(void) {
    int64_t now[2] = {0, 0};
    SYS(clock_gettime, 0 /* CLOCK_REALTIME */, now);
    return now[0];
}

/* Files in the directory, at most `most` of them; *total counts the bytes of all. Removes what
 * was left unfinished, and what somebody else put there, which nobody uses. */
static size_t list_files(int fd, struct file *list, size_t most, uint64_t *total) {
    static char buf[32768] __attribute__((aligned(8)));
    int64_t now = seconds_now();
    uint32_t user = (uint32_t)SYS(geteuid);
    size_t n = 0;
    *total = 0;
    SYS(lseek, fd, 0, 0);
    for (long got; (got = SYS(getdents64, fd, buf, sizeof buf)) > 0;) {
        for (long at = 0; at < got; at += *(uint16_t *)(buf + at + 16)) {
            const char *name = buf + at + 19;
            struct stat st;
            bool temp = str_starts(name, TEMP_PREFIX);
            if ((!temp && strlen(name) != NAME_LEN - 1) || SYS(newfstatat, fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
                continue;
            bool useless = st.st_uid != user || (temp && (int64_t)st.st_mtime + TEMP_OLD < now);
            if (useless) SYS(unlinkat, fd, name, 0);
            if (temp || useless) continue;
            *total += (uint64_t)st.st_size;
            if (n == most) continue;
            list[n].size = (uint64_t)st.st_size;
            list[n].used = kept_last_use(&st);
            memcpy(list[n++].name, name, NAME_LEN);
        }
    }
    return n;
}

static struct file list[4096];

static long open_dir(void) { return SYS(openat, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

void kept_dir_trim(void) {
    uint64_t total, most = limit();
    long fd = open_dir();
    if (fd < 0) return;
    size_t n = list_files((int)fd, list, ARRAY_LEN(list), &total);
    while (total > most && n) {
        size_t oldest = 0;
        for (size_t i = 1; i < n; i++)
            if (list[i].used < list[oldest].used) oldest = i;
        SYS(unlinkat, fd, list[oldest].name, 0);
        total -= list[oldest].size;
        list[oldest] = list[--n];
        if (!n && total > most) n = list_files((int)fd, list, ARRAY_LEN(list), &total);
    }
    SYS(close, fd);
}

/* Those of one size; NULL: none. */
static struct file *oldest_of(struct file *files, size_t n, uint64_t bytes) {
    struct file *oldest = NULL;
    for (size_t i = 0; i < n; i++)
        if (files[i].size == bytes && (!oldest || files[i].used < oldest->used)) oldest = &files[i];
    return oldest;
}

/* Looking at all files takes as long as a short process: each one would do it, since nobody has what it lacks. */
static bool was_full(long fd) {
    struct stat st;
    if (SYS(newfstatat, fd, FULL_NOTE, &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
    int64_t since = seconds_now() - (int64_t)st.st_mtime;
    return since >= 0 && since < FULL_FOR;
}

static void note_full(long fd) {
    long note = SYS(openat, fd, FULL_NOTE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (note < 0) return;
    SYS(utimensat, note, 0, 0, 0);
    SYS(close, note);
}

static bool make_room(long fd, uint64_t bytes) {
    uint64_t total, such = 0, most = limit() / 4;
    size_t n = list_files((int)fd, list, ARRAY_LEN(list), &total);
    for (size_t i = 0; i < n; i++)
        if (list[i].size == bytes) such += bytes;
    if (such + bytes <= most) return true;
    const struct file *oldest = oldest_of(list, n, bytes);
    return oldest && oldest->used + UNUSED_LONG < (uint64_t)seconds_now() && such <= most &&
           SYS(unlinkat, fd, oldest->name, 0) == 0;
}

bool kept_dir_has_room(uint64_t bytes) {
    long fd = open_dir();
    if (fd < 0) return false;
    bool full = was_full(fd), has = !full && make_room(fd, bytes);
    if (!full && !has) note_full(fd);
    SYS(close, fd);
    return has;
}

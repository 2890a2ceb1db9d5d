#include "engine/kept_mark.h"

#include <linux/fcntl.h>

#include "inproc/hash.h"
#include "inproc/sys.h"

#define MARK_RANGE (1u << 29) /* seconds: all marks are times before 1987, which no clock gives */

static uint64_t boot; /* 0: not known */

uint64_t kept_boot(void) { return boot; }
void kept_set_boot(uint64_t known) { boot = known; }

static uint64_t this_boot(void) {
    char text[64];
    if (boot) return boot;
    long fd = SYS(openat, AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    long n = SYS(read, fd, text, sizeof text);
    SYS(close, fd);
    if (n > 0) boot = hash_bytes(text, (size_t)n, 0) | 1;
    return boot;
}

static bool mark_of(const struct stat *st, uint64_t checksum, int64_t time[2]) {
    const uint64_t what[] = {checksum, st->st_dev, st->st_ino, (uint64_t)st->st_size, this_boot()};
    uint64_t h = hash_bytes(what, sizeof what, 0);
    time[0] = (int64_t)(h % MARK_RANGE);
    time[1] = (int64_t)((h >> 32) % 1000000000);
    return this_boot() != 0;
}

bool kept_is_marked(const struct stat *st, uint64_t checksum) {
    int64_t time[2];
    return st->st_mtime < MARK_RANGE && mark_of(st, checksum, time) && (int64_t)st->st_mtime == time[0] &&
           (int64_t)st->st_mtime_nsec == time[1];
}

void kept_mark(int fd, const struct stat *seen, uint64_t checksum) {
    struct stat st;
    struct {
        int64_t access[2], modification[2];
    } times = {.access = {0, (1l << 30) - 1 /* UTIME_NOW */}};
    if (SYS(fstat, fd, &st) != 0 || !mark_of(&st, checksum, times.modification)) return;
    if (seen && (seen->st_ctime != st.st_ctime || seen->st_ctime_nsec != st.st_ctime_nsec)) return;
    SYS(utimensat, fd, 0, &times, 0);
}

uint64_t kept_last_use(const struct stat *st) {
    return st->st_mtime < MARK_RANGE || st->st_atime > st->st_mtime ? st->st_atime : st->st_mtime;
}

#include "sphere/file_id.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"

#define ZERO_MAJOR 1
#define ZERO_MINOR 5

/* As fstat has it. */
#define DEV_MAJOR(dev) ((uint32_t)((dev) >> 8 & 0xfff))
#define DEV_MINOR(dev) ((uint32_t)(((dev)&0xff) | ((dev) >> 12 & ~0xffull)))

static uint64_t encode_dev(uint64_t major, uint64_t minor) {
    return (minor & 0xff) | major << 8 | (minor & ~0xffull) << 12;
}

static uint64_t ns(const struct statx_timestamp *t) { return (uint64_t)t->tv_sec * 1000000000ull + t->tv_nsec; }

/* By statx(); where a filter that does not know it says EPERM, by fstat(), without the time of birth. */
static bool examine(int fd, struct statx *st) {
    struct stat old;
    if (fd < 0) return false;
    long ret = SYS(statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, st);
    if (ret != -EPERM && ret != -ENOSYS) return ret == 0;
    if (SYS(fstat, fd, &old) != 0) return false;
    *st = (struct statx){.stx_mode = (uint16_t)old.st_mode,
                         .stx_nlink = (uint32_t)old.st_nlink,
                         .stx_ino = old.st_ino,
                         .stx_size = (uint64_t)old.st_size,
                         .stx_dev_major = DEV_MAJOR(old.st_dev),
                         .stx_dev_minor = DEV_MINOR(old.st_dev),
                         .stx_rdev_major = DEV_MAJOR(old.st_rdev),
                         .stx_rdev_minor = DEV_MINOR(old.st_rdev),
                         .stx_mtime = {(int64_t)old.st_mtime, (uint32_t)old.st_mtime_nsec},
                         .stx_ctime = {(int64_t)old.st_ctime, (uint32_t)old.st_ctime_nsec}};
    return true;
}

bool file_identify(int fd, struct file_id *id) {
    struct statx st = {0};
    if (!examine(fd, &st)) return false;
    uint32_t generation = 0; /* not all file systems have one */
    bool regular = (st.stx_mode & S_IFMT) == S_IFREG;
    if (regular) SYS(ioctl, fd, FS_IOC_GETVERSION, &generation);
    *id = (struct file_id){.dev = encode_dev(st.stx_dev_major, st.stx_dev_minor),
                           .ino = st.stx_ino,
                           .size = st.stx_size,
                           .mtime_ns = ns(&st.stx_mtime),
                           .ctime_ns = ns(&st.stx_ctime)};
    uint64_t born = st.stx_mask & STATX_BTIME ? ns(&st.stx_btime) : 0;
    id->birth = (uint32_t)((born * 0x9e3779b97f4a7c15ull >> 32) ^ generation) | 1;
    return regular;
}

bool file_is_zero(int fd) {
    struct statx st = {0};
    return examine(fd, &st) && (st.stx_mode & S_IFMT) == S_IFCHR && st.stx_rdev_major == ZERO_MAJOR &&
           st.stx_rdev_minor == ZERO_MINOR;
}

bool file_is_anonymous(int fd, uint64_t *ino) {
    static const char shown[] = "/dev/zero (deleted)";
    struct statx st = {0};
    char path[32], name[sizeof shown];
    if (!examine(fd, &st) || (st.stx_mode & S_IFMT) != S_IFREG || likely(st.stx_nlink)) return false;
    fmt_into(path, sizeof path, "/proc/self/fd/%d", fd);
    long n = SYS(readlink, path, name, sizeof name);
    *ino = st.stx_ino;
    return n == sizeof shown - 1 && memcmp(name, shown, sizeof shown - 1) == 0;
}

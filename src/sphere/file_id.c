#include "sphere/file_id.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>

#include "inproc/sys.h"

#define ZERO_MAJOR 1
#define ZERO_MINOR 5

/* As fstat has it. */
static uint64_t encode_dev(uint64_t major, uint64_t minor) {
    return (minor & 0xff) | major << 8 | (minor & ~0xffull) << 12;
}

static uint64_t ns(const struct statx_timestamp *t) { return (uint64_t)t->tv_sec * 1000000000ull + t->tv_nsec; }

bool file_identify(int fd, struct file_id *id) {
    struct statx st = {0};
    if (fd < 0 || SYS(statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0) return false;
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
    return SYS(statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 && (st.stx_mode & S_IFMT) == S_IFCHR &&
           st.stx_rdev_major == ZERO_MAJOR && st.stx_rdev_minor == ZERO_MINOR;
}

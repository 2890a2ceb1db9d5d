#include "inproc/fds.h"

#include <linux/fcntl.h>

#include "inproc/sys.h"

#define RLIMIT_NOFILE_ 7
#define FEW 64u

static void close_each(uint32_t first, uint32_t last) {
    for (uint32_t fd = first; fd <= last; fd++) SYS(close, fd);
}

/* Those that /proc lists. False: there is no /proc. The list may be read while its entries go: what is left, another round finds. */
static bool close_listed(uint32_t first, uint32_t last) {
    uint8_t records[2048] __attribute__((aligned(8)));
    long dir = SYS(openat, AT_FDCWD, "/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return false;
    for (bool found = true; found;) {
        found = false;
        SYS(lseek, dir, 0, 0);
        for (long n; (n = SYS(getdents64, dir, records, sizeof records)) > 0;)
            for (long at = 0; at < n; at += *(const uint16_t *)(records + at + 16)) {
                uint64_t fd = 0; /* struct linux_dirent64: ino, off, u16 length, u8 type, name */
                const uint8_t *name = records + at + 19;
                for (; *name >= '0' && *name <= '9'; name++) fd = fd * 10 + (*name - '0');
                if (name == records + at + 19 || fd < first || fd > last || fd == (uint64_t)dir) continue;
                SYS(close, fd);
                found = true;
            }
    }
    SYS(close, dir);
    return true;
}

void fds_close(uint32_t first, uint32_t last) {
    uint64_t limit[2] = {0, 0};
    if (SYS(close_range, first, last, 0) == 0) return;
    if (last - first < FEW) return close_each(first, last);
    if (close_listed(first, last)) return;
    SYS(prlimit64, 0, RLIMIT_NOFILE_, 0, limit); /* those beyond it were made before it was lowered */
    close_each(first, (uint32_t)MIN(last, MIN(limit[1], 1u << 20)));
}

void fds_close_all(void) { fds_close(0, UINT32_MAX); }

/* Descriptors: ours stay out of the program's sight; a few files of /proc are answered by us. */
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_files.h"
#include "sphere/runtime.h"
#include "sphere/sys/special.h"

static bool is_ours(uint64_t fd) { return (int)fd == the_runtime.rt_fd; }

long sys_close(struct tblock *t, uint64_t a[6]) {
    if (is_ours(a[0])) return -EBADF;
    return gate_syscall(__NR_close, a);
}

long sys_close_range(struct tblock *t, uint64_t a[6]) {
    uint32_t lo = (uint32_t)a[0], hi = (uint32_t)a[1], ours = (uint32_t)the_runtime.rt_fd;
    if (lo > hi || ours < lo || ours > hi) return gate_syscall(__NR_close_range, a);
    long ret = 0;
    if (ours > lo) ret = SYS(close_range, lo, ours - 1, a[2]);
    if (ret == 0 && ours < hi) ret = SYS(close_range, ours + 1, hi, a[2] & ~2ul /* CLOSE_RANGE_UNSHARE is done */);
    return ret;
}

long sys_dup2(struct tblock *t, uint64_t a[6]) {
    if (is_ours(a[0])) return -EBADF;
    if (is_ours(a[1])) { /* the program wants our number: move out of the way */
        long moved = SYS(fcntl, the_runtime.rt_fd, F_DUPFD_CLOEXEC, 100);
        if (moved < 0) return -EBUSY;
        the_runtime.rt_fd = (int)moved;
    }
    return gate_syscall((long)t->gpr[RAX], a);
}

static bool names_own_exe(const char *path) {
    if (!str_starts(path, "/proc/")) return false;
    path += 6;
    if (strcmp(path, "self/exe") == 0 || strcmp(path, "thread-self/exe") == 0) return true;
    char own[32];
    fmt_into(own, sizeof own, "%d/exe", (int)SYS(getpid));
    return strcmp(path, own) == 0;
}

static long own_exe(gaddr buf, size_t cap) {
    size_t n = MIN(strlen(the_runtime.exe_path), cap);
    if ((long)cap <= 0) return -EINVAL;
    return guest_write(buf, the_runtime.exe_path, n) ? (long)n : -EFAULT;
}

long sys_readlink(struct tblock *t, uint64_t a[6]) {
    char path[64];
    if (guest_read_string(path, a[0], sizeof path) > 0 && names_own_exe(path)) return own_exe(a[1], a[2]);
    return gate_syscall(__NR_readlink, a);
}

long sys_readlinkat(struct tblock *t, uint64_t a[6]) {
    char path[64];
    if (guest_read_string(path, a[1], sizeof path) > 0 && names_own_exe(path)) return own_exe(a[2], a[3]);
    return gate_syscall(__NR_readlinkat, a);
}

static long open_own_exe(uint64_t flags, uint64_t mode) { return SYS(openat, AT_FDCWD, the_runtime.exe_path, flags, mode); }

long sys_open(struct tblock *t, uint64_t a[6]) {
    char path[64];
    if (guest_read_string(path, a[0], sizeof path) > 0 && names_own_exe(path)) return open_own_exe(a[1], a[2]);
    return code_files_opened(gate_syscall(__NR_open, a), a[1]);
}

long sys_openat(struct tblock *t, uint64_t a[6]) {
    char path[64];
    if (guest_read_string(path, a[1], sizeof path) > 0 && names_own_exe(path)) return open_own_exe(a[2], a[3]);
    return code_files_opened(gate_syscall(__NR_openat, a), a[2]);
}

/* Calls with a path that may lead to what /proc says about the program: they get the program's view.
 * Only such paths are touched; everything else goes to the kernel as it is. */
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/inotify.h>
#include <linux/openat2.h>
#include <linux/stat.h>

#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/channel.h"
#include "sphere/code_files.h"
#include "sphere/runtime.h"
#include "sphere/sys/proc_files.h"
#include "sphere/sys/special.h"

#define PATH_SEEN 256 /* longer ones are nobody's idea of a file in /proc */
#define EXE_PATH 4096

/* Whether (dirfd, path) is one of those files. */
static bool find(int dirfd, gaddr path, struct proc_file *f, char *text) {
    return guest_read_string(text, path, PATH_SEEN) > 0 && proc_find(dirfd, text, f);
}

/* Replaces the argument by the program's own path, where the call follows links, or by what the kernel calls a link. -ENOENT: must
 * not be seen. */
static long redirect(int dirfd, uint64_t *path, bool follow, char *instead) {
    char text[PATH_SEEN];
    struct proc_file f;
    if (!find(dirfd, *path, &f, text)) return 0;
    if (f.what == PROC_OWN_FD) return -ENOENT;
    if (f.what == PROC_EXE && follow && proc_exe_path(&f, instead, EXE_PATH) > 0) *path = (uint64_t)instead;
    if (f.what != PROC_MAP_LINK) return 0;
    if (!proc_map_link(&f, text, instead, EXE_PATH)) return -ENOENT;
    *path = (uint64_t)instead;
    return 0;
}

static long at_path(struct tblock *t, uint64_t a[6], int dirfd, int arg, bool follow) {
    enum { TRIES = 10 };
    char instead[EXE_PATH];
    const uint64_t path = a[arg];
    for (int i = 0;; i++) {
        long err = redirect(dirfd, &a[arg], follow, instead);
        if (err) return err;
        long ret = gate_syscall((long)t->gpr[RAX], a);
        if (ret != -ENOENT || a[arg] == path || i == TRIES) return ret;
        a[arg] = path; /* the kernel may call it otherwise by now */
    }
}

/* /proc/PID/task has a link for each thread: some programs count threads by this. `path` 0: dirfd itself. */
static void hide_services(int dirfd, gaddr path, gaddr links, size_t width) {
    char text[PATH_SEEN];
    struct proc_file f;
    uint64_t n = 0;
    if (!the_channel || !guest_read(&n, links, width) || likely(n <= 3))
        return; /* without a recording there are none */
    bool by_name = path && guest_read_string(text, path, PATH_SEEN) > 0;
    if (!(by_name ? proc_find(dirfd, text, &f) : proc_find_fd(dirfd, &f)) || f.what != PROC_FOLDER_TASK) return;
    uint64_t services = proc_services(&f);
    if (n <= 2 + services) return;
    n -= services;
    guest_write(links, &n, width);
}

static long stat_path(struct tblock *t, uint64_t a[6], bool follow) {
    gaddr path = a[0];
    long ret = at_path(t, a, AT_FDCWD, 0, follow);
    if (ret == 0) hide_services(AT_FDCWD, path, a[1] + offsetof(struct stat, st_nlink), 8);
    return ret;
}

long sys_stat(struct tblock *t, uint64_t a[6]) { return stat_path(t, a, true); }
long sys_lstat(struct tblock *t, uint64_t a[6]) { return stat_path(t, a, false); }

long sys_fstat(struct tblock *t, uint64_t a[6]) {
    if (fd_is_own(a[0])) return -EBADF;
    long ret = gate_syscall(__NR_fstat, a);
    if (ret == 0) hide_services((int)a[0], 0, a[1] + offsetof(struct stat, st_nlink), 8);
    return ret;
}

long sys_access(struct tblock *t, uint64_t a[6]) { return at_path(t, a, AT_FDCWD, 0, true); }

/* newfstatat has its flags in the fourth argument, statx in the third, faccessat2 in the fourth; faccessat has none. */
long sys_fstatat(struct tblock *t, uint64_t a[6]) {
    if (fd_is_own(a[0])) return -EBADF;
    bool is_statx = t->gpr[RAX] == __NR_statx;
    uint64_t flags = is_statx ? a[2] : a[3];
    gaddr path = a[1];
    long ret = at_path(t, a, (int)a[0], 1, !(flags & AT_SYMLINK_NOFOLLOW));
    if (ret != 0) return ret;
    if (is_statx)
        hide_services((int)a[0], path, a[4] + offsetof(struct statx, stx_nlink), 4);
    else
        hide_services((int)a[0], path, a[2] + offsetof(struct stat, st_nlink), 8);
    return 0;
}

long sys_faccessat(struct tblock *t, uint64_t a[6]) {
    if (fd_is_own(a[0])) return -EBADF;
    bool follow = t->gpr[RAX] == __NR_faccessat || !(a[3] & AT_SYMLINK_NOFOLLOW);
    return at_path(t, a, (int)a[0], 1, follow);
}

/* ---- calls that only follow their path ---- */

long sys_path0(struct tblock *t, uint64_t a[6]) { return at_path(t, a, AT_FDCWD, 0, true); }

long sys_inotify_add_watch(struct tblock *t, uint64_t a[6]) {
    return at_path(t, a, AT_FDCWD, 1, !(a[2] & IN_DONT_FOLLOW));
}

/* Whether a call with (dirfd, path) in front follows a link at the end of the path. */
static bool follows(uint64_t nr, const uint64_t a[6]) {
    switch (nr) {
    case __NR_linkat:
    case __NR_name_to_handle_at: return a[4] & AT_SYMLINK_FOLLOW;
    case __NR_fchownat: return !(a[4] & AT_SYMLINK_NOFOLLOW);
    case __NR_utimensat: return !(a[3] & AT_SYMLINK_NOFOLLOW);
    case __NR_open_tree: return !(a[2] & AT_SYMLINK_NOFOLLOW);
    default: return true;
    }
}

long sys_fd0_path1(struct tblock *t, uint64_t a[6]) {
    return fd_is_own(a[0]) ? -EBADF : at_path(t, a, (int)a[0], 1, follows(t->gpr[RAX], a));
}

long sys_linkat(struct tblock *t, uint64_t a[6]) { return fd_is_own(a[2]) ? -EBADF : sys_fd0_path1(t, a); }

/* ---- readlink ---- */

static long give_link(const struct proc_file *f, gaddr buf, uint64_t cap) {
    char exe[EXE_PATH];
    if ((int)cap <= 0) return -EINVAL;
    long n = proc_exe_path(f, exe, sizeof exe);
    if (n <= 0) return n ? n : -ENOENT;
    n = (long)MIN((uint64_t)n, cap);
    return guest_write(buf, exe, (size_t)n) ? n : -EFAULT;
}

static long read_link(struct tblock *t, uint64_t a[6], int dirfd, int arg) {
    char text[PATH_SEEN];
    struct proc_file f;
    long n = guest_read_string(text, a[arg], sizeof text);
    if (n > 0 ? proc_find(dirfd, text, &f) : n == 0 && proc_find_fd(dirfd, &f)) {
        if (f.what == PROC_OWN_FD) return -ENOENT;
        if (f.what == PROC_EXE) return give_link(&f, a[arg + 1], a[arg + 2]);
        if (f.what == PROC_MAP_LINK) return at_path(t, a, dirfd, arg, false);
    }
    return gate_syscall((long)t->gpr[RAX], a);
}

long sys_readlink(struct tblock *t, uint64_t a[6]) { return read_link(t, a, AT_FDCWD, 0); }

long sys_readlinkat(struct tblock *t, uint64_t a[6]) {
    return fd_is_own(a[0]) ? -EBADF : read_link(t, a, (int)a[0], 1);
}

/* ---- open ---- */

static bool is_exe(int dirfd, gaddr path, bool follow) {
    struct stat st;
    return SYS(newfstatat, dirfd, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_dev == the_runtime.exe_dev && st.st_ino == the_runtime.exe_ino;
}

/* The kernel does not know that the program runs from its file, and would let it be written to. Other reasons not to open it
 * come first. */
static long busy(int dirfd, gaddr path, uint64_t flags) {
    bool changes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
    if (likely(!changes) || (flags & O_PATH) || likely(!is_exe(dirfd, path, !(flags & O_NOFOLLOW)))) return 0;
    long fd = SYS(openat, dirfd, path, (flags & ~(uint64_t)O_TRUNC) | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    SYS(close, fd);
    return -ETXTBSY;
}

long sys_truncate(struct tblock *t, uint64_t a[6]) {
    long err = (int64_t)a[1] >= 0 ? busy(AT_FDCWD, a[0], O_WRONLY) : 0;
    return err ? err : sys_path0(t, a);
}

long sys_creat(struct tblock *t, uint64_t a[6]) {
    long err = busy(AT_FDCWD, a[0], O_WRONLY);
    return err ? err : code_files_opened(gate_syscall(__NR_creat, a), O_WRONLY);
}

static long open_path(struct tblock *t, uint64_t a[6], int dirfd, int arg, uint64_t flags) {
    char text[PATH_SEEN];
    struct proc_file f;
    if (find(dirfd, a[arg], &f, text)) {
        if (f.what == PROC_OWN_FD) return -ENOENT;
        if (f.what == PROC_MAP_LINK) return code_files_opened(at_path(t, a, dirfd, arg, true), flags);
        long fd = proc_open(&f, dirfd, text, flags);
        if (fd != PROC_AS_IS) return fd;
    }
    long err = busy(dirfd, a[arg], flags);
    return err ? err : code_files_opened(gate_syscall((long)t->gpr[RAX], a), flags);
}

long sys_open(struct tblock *t, uint64_t a[6]) { return open_path(t, a, AT_FDCWD, 0, a[1]); }

long sys_openat(struct tblock *t, uint64_t a[6]) {
    return fd_is_own(a[0]) ? -EBADF : open_path(t, a, (int)a[0], 1, a[2]);
}

long sys_openat2(struct tblock *t, uint64_t a[6]) {
    struct open_how how;
    if (fd_is_own(a[0])) return -EBADF;
    if (a[3] < sizeof how || !guest_read(&how, a[2], sizeof how)) return gate_syscall(__NR_openat2, a);
    if (how.resolve & RESOLVE_NO_MAGICLINKS) return code_files_opened(gate_syscall(__NR_openat2, a), how.flags);
    return open_path(t, a, (int)a[0], 1, how.flags);
}

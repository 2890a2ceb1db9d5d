#include "sphere/legacy.h"

#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/code_watch.h"
#include "sphere/sys/model.h"
#include "sphere/thread.h"

/* ---- int $0x80 ---- */

/* Calls whose arguments mean the same in both interfaces: 32-bit number, 64-bit name. */
#define SAME_CALLS(X)                                                                                                  \
    X(1, exit)                                                                                                         \
    X(2, fork)                                                                                                         \
    X(3, read) X(4, write) X(5, open) X(6, close) X(8, creat) X(9, link) X(10, unlink) X(12, chdir) X(14, mknod) X(    \
        15, chmod) X(20, getpid) X(21, mount) X(27, alarm) X(29, pause) X(33, access) X(36, sync) X(37, kill)          \
        X(38, rename) X(39, mkdir) X(40, rmdir) X(41, dup) X(42, pipe) X(45, brk) X(52, umount2) X(57, setpgid) X(     \
            60, umask) X(61, chroot) X(63, dup2) X(64, getppid) X(65, getpgrp) X(66, setsid) X(74, sethostname)        \
            X(83, symlink) X(85, readlink) X(91, munmap) X(94, fchmod) X(96, getpriority) X(97, setpriority) X(        \
                118, fsync) X(121, setdomainname)                                                                      \
                X(125, mprotect) X(132, getpgid) X(133, fchdir) X(136, personality) X(143, flock) X(144, msync)        \
                    X(147, getsid) X(148, fdatasync) X(150, mlock) X(151, munlock) X(152, mlockall) X(153, munlockall) \
                        X(154, sched_setparam) X(155, sched_getparam) X(156, sched_setscheduler) X(                    \
                            157, sched_getscheduler) X(158,                                                            \
                                                       sched_yield) X(159, sched_get_priority_max)                     \
                            X(160, sched_get_priority_min) X(163, mremap) X(168, poll) X(172, prctl) X(183, getcwd) X( \
                                190, vfork) X(198, lchown)                                                             \
                                X(199, getuid) X(200, getgid) X(201, geteuid) X(202, getegid) X(203, setreuid) X(      \
                                    204, setregid) X(205, getgroups)                                                   \
                                    X(206, setgroups) X(207, fchown) X(208, setresuid) X(209, getresuid) X(            \
                                        210, setresgid) X(211, getresgid)                                              \
                                        X(212, chown) X(213, setuid) X(214, setgid)                                    \
                                            X(215, setfsuid) X(216, setfsgid) X(218, mincore) X(219, madvise) X(       \
                                                224, gettid) X(238,                                                    \
                                                               tkill) X(241, sched_setaffinity)                        \
                                                X(242, sched_getaffinity) X(252, exit_group) X(254, epoll_create)      \
                                                    X(255, epoll_ctl) X(256, epoll_wait) X(258, set_tid_address) X(    \
                                                        270, tgkill) X(291, inotify_init)                              \
                                                        X(292, inotify_add_watch) X(293, inotify_rm_watch) X(          \
                                                            295, openat) X(296,                                        \
                                                                           mkdirat) X(297, mknodat)                    \
                                                            X(298, fchownat) X(301, unlinkat) X(302, renameat) X(      \
                                                                303, linkat) X(304,                                    \
                                                                               symlinkat) X(305, readlinkat)           \
                                                                X(306, fchmodat) X(307, faccessat) X(310, unshare)     \
                                                                    X(318, getcpu) X(323, eventfd) X(328, eventfd2) X( \
                                                                        329, epoll_create1) X(330, dup3)               \
                                                                        X(331, pipe2) X(332, inotify_init1) X(         \
                                                                            355, getrandom) X(356, memfd_create)       \
                                                                            X(359, socket) X(360, socketpair) X(       \
                                                                                361, bind) X(362, connect)             \
                                                                                X(363, listen) X(364, accept4) X(      \
                                                                                    367,                               \
                                                                                    getsockname) X(368, getpeername)   \
                                                                                    X(369, sendto) X(371, recvfrom) X( \
                                                                                        373, shutdown) X(383, statx)   \
                                                                                        X(403, clock_gettime)          \
                                                                                            X(406, clock_getres) X(    \
                                                                                                407, clock_nanosleep)  \
                                                                                                X(414, ppoll)          \
                                                                                                    X(422, futex)

#define FIRST_COMMON 424 /* from here on both interfaces have the same numbers */
#define MMAP2 192
#define WAITPID 7

#define SAME_ROW(nr32, name) [nr32] = __NR_##name + 1,
static const uint16_t same[FIRST_COMMON] = {SAME_CALLS(SAME_ROW)};

/* Calls with structures of their own that neither wait for long nor change what the runtime relies on. */
static const uint16_t issued_as_is[] = {
    13 /* time */,         19 /* lseek */,       24 /* getuid */,      43 /* times */,          47 /* getgid */,
    49 /* geteuid */,      50 /* getegid */,     59 /* oldolduname */, 76 /* old_getrlimit */,  77 /* getrusage */,
    78 /* gettimeofday */, 84 /* oldlstat */,    92 /* truncate */,    93 /* ftruncate */,      99 /* statfs */,
    100 /* fstatfs */,     104 /* setitimer */,  105 /* getitimer */,  106 /* stat */,          107 /* lstat */,
    108 /* fstat */,       109 /* olduname */,   116 /* sysinfo */,    122 /* uname */,         140 /* _llseek */,
    141 /* getdents */,    162 /* nanosleep */,  191 /* getrlimit */,  195 /* stat64 */,        196 /* lstat64 */,
    197 /* fstat64 */,     220 /* getdents64 */, 221 /* fcntl64 */,    265 /* clock_gettime */, 266 /* clock_getres */,
    268 /* statfs64 */,    269 /* fstatfs64 */,  300 /* fstatat64 */,  340 /* prlimit64 */,
};

static bool may_issue(uint32_t nr) {
    for (size_t i = 0; i < ARRAY_LEN(issued_as_is); i++)
        if (issued_as_is[i] == nr) return true;
    return false;
}

static long int80(uint32_t nr, const uint64_t a[6]) {
    long ret, frame = (long)a[5];
    __asm__ volatile("xchg %%rbp, %[frame]\n\tint $0x80\n\txchg %%rbp, %[frame]"
                     : "=a"(ret), [frame] "+r"(frame)
                     : "a"(nr), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4])
                     : "r8", "r9", "r10", "r11", "memory");
    return ret;
}

/* The call as its 64-bit counterpart; special functions find the number where they expect it. */
static long as_64(struct tblock *t, uint64_t nr, uint64_t a[6]) {
    uint64_t rax = t->gpr[RAX];
    if (code_watch_protected) model_before_kernel_write(nr, a);
    t->gpr[RAX] = nr;
    long ret = nr < MODEL_CALLS && model_special[nr] ? model_special[nr](t, a) : gate_syscall((long)nr, a);
    t->gpr[RAX] = rax;
    return ret;
}

static long call32(struct tblock *t, uint32_t nr, uint64_t a[6]) {
    if (nr >= FIRST_COMMON && nr < MODEL_CALLS && nr != __NR_rt_sigreturn) return as_64(t, nr, a);
    if (nr < FIRST_COMMON && same[nr]) return as_64(t, same[nr] - 1u, a);
    if (nr == WAITPID) {
        a[3] = 0;
        return as_64(t, __NR_wait4, a);
    }
    if (nr == MMAP2) {
        a[3] |= MAP_32BIT;
        a[4] = (uint64_t)(int32_t)a[4];
        a[5] *= PAGE_SIZE;
        return as_64(t, __NR_mmap, a);
    }
    if (!may_issue(nr)) return -ENOSYS;
    code_watch_before_any_kernel_write();
    return int80(nr, a);
}

void legacy_int80(struct tblock *t, unsigned len) {
    uint64_t a[6] = {(uint32_t)t->gpr[RBX], (uint32_t)t->gpr[RCX], (uint32_t)t->gpr[RDX],
                     (uint32_t)t->gpr[RSI], (uint32_t)t->gpr[RDI], (uint32_t)t->gpr[RBP]};
    /* filters that were written for this interface, too, are rare; the others kill or refuse whoever uses it */
    long ret = t->thread->seccomp.mode ? -ENOSYS : call32(t, (uint32_t)t->gpr[RAX], a);
    if (ret == GATE_ABORTED)
        t->pc -= len;
    else
        t->gpr[RAX] = (uint64_t)ret;
}

/* ---- the vsyscall page ---- */

#define VSYSCALL 0xffffffffff600000ul

/* Kernels can be started without it. Asked once, by the first program that jumps there. */
static bool kernel_has_vsyscall(void) {
    static int8_t known = -1;
    if (known >= 0) return known;
    char text[4096], *at = text;
    long fd = SYS(openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC), n;
    known = fd < 0; /* no way to tell: most have it */
    size_t kept = 0;
    while (!known && (n = SYS(read, fd, text + kept, sizeof text - kept - 1)) > 0) {
        text[kept + (size_t)n] = '\0';
        for (at = text; (at = strchr(at, '[')); at++)
            if (str_starts(at, "[vsyscall]")) known = 1;
        kept = MIN(kept + (size_t)n, 16u); /* the word may be cut in two */
        memmove(text, text + strlen(text) - kept, kept);
    }
    if (fd >= 0) SYS(close, fd);
    return known;
}

bool legacy_vsyscall(struct tblock *t) {
    static const uint16_t call[] = {__NR_gettimeofday, __NR_time, __NR_getcpu};
    uint64_t entry = t->pc - VSYSCALL;
    if (entry >= PAGE_SIZE || (entry & 0x3ff) || entry / 0x400 >= ARRAY_LEN(call) || !kernel_has_vsyscall())
        return false;
    uint64_t back, a[6] = {t->gpr[RDI], t->gpr[RSI]};
    if (!guest_read(&back, t->gpr[RSP], 8)) return false;
    uint64_t nr = call[entry / 0x400];
    if (code_watch_protected) model_before_kernel_write(nr, a);
    long ret = sys6((long)nr, (long)a[0], (long)a[1], 0, 0, 0, 0);
    if (ret == -EFAULT) return false;
    t->gpr[RAX] = (uint64_t)ret;
    t->gpr[RSP] += 8;
    t->pc = back;
    return true;
}

#include "sphere/legacy.h"

#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/sched.h>

#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/code_watch.h"
#include "sphere/mode.h"
#include "sphere/sys/model.h"
#include "sphere/thread.h"

/* ---- int $0x80: what calls there are ---- */

/* Calls whose arguments mean the same in both interfaces, or can be made to (widen_arguments): 32-bit number, 64-bit name. */
// clang-format off
#define SAME_CALLS(X) \
    X(1, exit) X(2, fork) X(3, read) X(4, write) X(5, open) X(6, close) X(8, creat) X(9, link) X(10, unlink) X(11, execve) \
    X(12, chdir) X(14, mknod) X(15, chmod) X(20, getpid) X(21, mount) X(27, alarm) X(29, pause) X(33, access) \
    X(36, sync) X(37, kill) X(38, rename) X(39, mkdir) X(40, rmdir) X(41, dup) X(42, pipe) X(45, brk) X(52, umount2) \
    X(57, setpgid) X(60, umask) X(61, chroot) X(63, dup2) X(64, getppid) X(65, getpgrp) X(66, setsid) \
    X(74, sethostname) X(83, symlink) X(85, readlink) X(91, munmap) X(94, fchmod) X(96, getpriority) \
    X(97, setpriority) X(118, fsync) X(120, clone) X(121, setdomainname) X(125, mprotect) X(132, getpgid) X(133, fchdir) \
    X(136, personality) X(143, flock) X(144, msync) X(145, readv) X(146, writev) X(147, getsid) X(148, fdatasync) X(150, mlock) X(151, munlock) \
    X(152, mlockall) X(153, munlockall) X(154, sched_setparam) X(155, sched_getparam) X(156, sched_setscheduler) \
    X(157, sched_getscheduler) X(158, sched_yield) X(159, sched_get_priority_max) X(160, sched_get_priority_min) \
    X(163, mremap) X(168, poll) X(172, prctl) X(183, getcwd) X(190, fork) X(198, lchown) X(199, getuid) \
    X(200, getgid) X(201, geteuid) X(202, getegid) X(203, setreuid) X(204, setregid) X(205, getgroups) \
    X(206, setgroups) X(207, fchown) X(208, setresuid) X(209, getresuid) X(210, setresgid) X(211, getresgid) \
    X(212, chown) X(213, setuid) X(214, setgid) X(215, setfsuid) X(216, setfsgid) X(218, mincore) X(219, madvise) \
    X(224, gettid) X(238, tkill) X(241, sched_setaffinity) X(242, sched_getaffinity) X(252, exit_group) \
    X(254, epoll_create) X(255, epoll_ctl) X(256, epoll_wait) X(258, set_tid_address) X(270, tgkill) \
    X(291, inotify_init) X(292, inotify_add_watch) X(293, inotify_rm_watch) X(295, openat) X(296, mkdirat) \
    X(297, mknodat) X(298, fchownat) X(301, unlinkat) X(302, renameat) X(303, linkat) X(304, symlinkat) \
    X(305, readlinkat) X(306, fchmodat) X(307, faccessat) X(310, unshare) X(318, getcpu) X(323, eventfd) \
    X(328, eventfd2) X(329, epoll_create1) X(330, dup3) X(331, pipe2) X(332, inotify_init1) X(355, getrandom) \
    X(356, memfd_create) X(359, socket) X(360, socketpair) X(361, bind) X(362, connect) X(363, listen) \
    X(364, accept4) X(367, getsockname) X(368, getpeername) X(369, sendto) X(371, recvfrom) X(373, shutdown) \
    X(383, statx) X(403, clock_gettime) X(406, clock_getres) X(407, clock_nanosleep) X(414, ppoll) X(422, futex)
// clang-format on

#define RESULT 0xffff
#define FCNTL 0xfffe
#define FIRST_COMMON 424 /* from here on both interfaces have the same numbers */
#define MMAP2 192
#define WAITPID 7
#define EXECVE 11
#define CLONE 120
#define READV 145
#define WRITEV 146

#define SAME_ROW(nr32, name) [nr32] = __NR_##name + 1,
static const uint16_t same[FIRST_COMMON] = {SAME_CALLS(SAME_ROW)};

/* Calls with structures of their own that neither wait for long nor change what the runtime relies on, and what they write. */
static const struct as_is {
    uint16_t nr;
    struct {
        uint8_t arg;
        uint16_t size; /* RESULT: as many bytes as the result says */
    } out[2];
} issued_as_is[] = {
    {13 /* time */, {{0, 4}}},
    {19 /* lseek */, {{0, 0}}},
    {24 /* getuid */, {{0, 0}}},
    {43 /* times */, {{0, 16}}},
    {47 /* getgid */, {{0, 0}}},
    {49 /* geteuid */, {{0, 0}}},
    {50 /* getegid */, {{0, 0}}},
    {59 /* oldolduname */, {{0, 45}}},
    {76 /* old_getrlimit */, {{1, 8}}},
    {77 /* getrusage */, {{1, 72}}},
    {78 /* gettimeofday */, {{0, 8}, {1, 8}}},
    {84 /* oldlstat */, {{1, 32}}},
    {92 /* truncate */, {{0, 0}}},
    {93 /* ftruncate */, {{0, 0}}},
    {99 /* statfs */, {{1, 64}}},
    {100 /* fstatfs */, {{1, 64}}},
    {104 /* setitimer */, {{2, 16}}},
    {105 /* getitimer */, {{1, 16}}},
    {106 /* stat */, {{1, 64}}},
    {107 /* lstat */, {{1, 64}}},
    {108 /* fstat */, {{1, 64}}},
    {109 /* olduname */, {{0, 325}}},
    {116 /* sysinfo */, {{0, 64}}},
    {122 /* uname */, {{0, 390}}},
    {140 /* _llseek */, {{3, 8}}},
    {141 /* getdents */, {{1, RESULT}}},
    {162 /* nanosleep */, {{1, 8}}},
    {191 /* getrlimit */, {{1, 8}}},
    {195 /* stat64 */, {{1, 96}}},
    {196 /* lstat64 */, {{1, 96}}},
    {197 /* fstat64 */, {{1, 96}}},
    {220 /* getdents64 */, {{1, RESULT}}},
    {221 /* fcntl64 */, {{2, FCNTL}}},
    {265 /* clock_gettime */, {{1, 8}}},
    {266 /* clock_getres */, {{1, 8}}},
    {268 /* statfs64 */, {{2, 84}}},
    {269 /* fstatfs64 */, {{2, 84}}},
    {300 /* fstatat64 */, {{2, 96}}},
    {340 /* prlimit64 */, {{3, 16}}},
};

static const struct as_is *outputs_of(uint32_t nr) {
    for (size_t i = 0; i < ARRAY_LEN(issued_as_is); i++)
        if (issued_as_is[i].nr == nr) return &issued_as_is[i];
    return NULL;
}

static size_t fcntl_writes(uint64_t command) {
    switch (command) {
    case 5 /* F_GETLK */: return 16;
    case 12 /* F_GETLK64 */:
    case 36 /* F_OFD_GETLK */: return 24;
    case 16 /* F_GETOWN_EX */:
    case 17 /* F_GETOWNER_UIDS */:
    case 1035 /* F_GET_RW_HINT */:
    case 1037 /* F_GET_FILE_RW_HINT */: return 8;
    default: return 0;
    }
}

void legacy_writes(uint32_t nr, const uint64_t a[6], struct writes *w) {
    const struct as_is *c = outputs_of(nr);
    bool wrote = w->ret >= 0 || (nr == 162 && w->ret == -EINTR);
    for (int i = 0; c && wrote && i < 2; i++) {
        size_t size = c->out[i].size;
        if (size == RESULT) size = (size_t)w->ret;
        if (size == FCNTL) size = fcntl_writes(a[1]);
        writes_range(w, a[c->out[i].arg], size);
    }
}

/* ---- as the same call by `syscall` ---- */

static void begin(struct tblock *t, uint32_t nr, gaddr next, uint64_t pops) {
    struct legacy_call *c = &t->thread->legacy;
    c->under_way = true;
    c->nr = nr;
    memcpy(c->gpr, t->gpr, sizeof c->gpr);
    c->pc = t->pc;
    c->next = next;
    c->pops = pops;
}

void legacy_done(struct tblock *t) {
    struct legacy_call *c = &t->thread->legacy;
    uint64_t ret = t->gpr[RAX];
    c->under_way = false;
    memcpy(t->gpr, c->gpr, sizeof t->gpr);
    t->gpr[RAX] = ret;
    t->gpr[RSP] += c->pops;
    t->pc = c->next;
}

void legacy_retry(struct tblock *t) {
    struct legacy_call *c = &t->thread->legacy;
    c->under_way = false;
    memcpy(t->gpr, c->gpr, sizeof t->gpr);
    t->pc = c->pc;
}

static void make(struct tblock *t, uint64_t nr, const uint64_t a[6]) {
    static const uint8_t reg[6] = {RDI, RSI, RDX, R10, R8, R9};
    t->gpr[RAX] = nr;
    for (int i = 0; i < 6; i++) t->gpr[reg[i]] = a[i];
    t->pc = t->thread->legacy.next;
    engine_host.syscall(t);
}

/* ---- int $0x80 ---- */

static long int80(uint32_t nr, const uint64_t a[6]) {
    long ret, frame = (long)a[5];
    __asm__ volatile("xchg %%rbp, %[frame]\n\tint $0x80\n\txchg %%rbp, %[frame]"
                     : "=a"(ret), [frame] "+r"(frame)
                     : "a"(nr), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4])
                     : "r8", "r9", "r10", "r11", "memory");
    return ret;
}

long legacy_issue(struct tblock *t, uint32_t nr, const uint64_t a[6]) {
    if (t->thread->seccomp.mode) return -ENOSYS;
    code_watch_before_any_kernel_write();
    return int80(nr, a);
}

/* ---- arguments in memory that are wider for `syscall` ---- */

#define WORDS_MAX 100000

/* Below what the program uses of its stack: nobody else's, and the same at replay. */
static gaddr free_stack(const struct tblock *t) { return (t->gpr[RSP] - 128) & ~15ul; }

/* Copies n words of four bytes to *top, downwards, as words of eight. 0: they cannot be read, or there is no room. */
static gaddr widen(gaddr *top, gaddr from, size_t n) {
    gaddr to = *top - 8 * n;
    code_watch_before_kernel_write(to, 8 * n);
    for (size_t i = 0; i < n; i++) {
        uint64_t word = 0;
        if (!guest_read(&word, from + 4 * i, 4) || !guest_write(to + 8 * i, &word, 8)) return 0;
    }
    return *top = to;
}

/* A list of pointers and a zero behind them; there may be none. False: as widen(). */
static bool widen_list(gaddr *top, uint64_t *list) {
    uint32_t word = 1;
    size_t n = 0;
    if (!*list) return true;
    while (n < WORDS_MAX && guest_read(&word, *list + 4 * n, 4) && word) n++;
    return !word && (*list = widen(top, *list, n + 1));
}

/* What cannot be read the call may find out by itself. */
static void widen_arguments(const struct tblock *t, uint32_t nr, uint64_t a[6]) {
    gaddr top = free_stack(t);
    if (nr == EXECVE && (!widen_list(&top, &a[1]) || !widen_list(&top, &a[2]))) a[1] = LAYOUT_GUEST_END;
    if ((nr == READV || nr == WRITEV) && a[2] <= 1024 && !(a[1] = widen(&top, a[1], 2 * a[2]))) a[1] = LAYOUT_GUEST_END;
    if (nr == CLONE) { /* the last two are the other way around */
        uint64_t tls = a[3];
        a[3] = a[4];
        a[4] = tls;
    }
}

/* The number and the arguments of the same call by `syscall`; false: there is none. */
static bool counterpart(const struct tblock *t, uint32_t nr, uint64_t a[6], uint64_t *nr64) {
    if (nr >= FIRST_COMMON) {
        *nr64 = nr;
        return nr < MODEL_CALLS;
    }
    if (nr == WAITPID) {
        a[3] = 0;
        *nr64 = __NR_wait4;
    } else if (nr == MMAP2) {
        a[3] |= MAP_32BIT;
        a[4] = (uint64_t)(int32_t)a[4];
        a[5] *= PAGE_SIZE;
        *nr64 = __NR_mmap;
    } else if (nr == CLONE && (a[0] & CLONE_SETTLS)) { /* by a segment, which we do not have */
        return false;
    } else {
        *nr64 = same[nr] - 1u;
        if (!same[nr]) return false;
    }
    widen_arguments(t, nr, a);
    return true;
}

void legacy_int80(struct tblock *t, unsigned len) {
    uint32_t nr = (uint32_t)t->gpr[RAX];
    uint64_t a[6] = {(uint32_t)t->gpr[RBX], (uint32_t)t->gpr[RCX], (uint32_t)t->gpr[RDX],
                     (uint32_t)t->gpr[RSI], (uint32_t)t->gpr[RDI], (uint32_t)t->gpr[RBP]};
    uint64_t nr64;
    if (counterpart(t, nr, a, &nr64)) {
        begin(t, nr, t->pc + len, 0);
        make(t, nr64, a);
    } else if (outputs_of(nr)) {
        t->pc += len;
        t->gpr[RAX] = (uint64_t)(the_mode->legacy ? the_mode->legacy(t, nr, a) : legacy_issue(t, nr, a));
    } else {
        t->pc += len;
        t->gpr[RAX] = (uint64_t)-ENOSYS;
    }
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
    begin(t, 0, back, 8);
    make(t, call[entry / 0x400], a);
    struct legacy_call *c = &t->thread->legacy;
    if (t->pc != back || t->gpr[RAX] != (uint64_t)-EFAULT) return true;
    memcpy(t->gpr, c->gpr, sizeof t->gpr);
    t->pc = c->pc;
    return false;
}

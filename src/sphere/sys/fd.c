/* Descriptors: ours stays out of the program's sight and reach.
 * They are O_PATH descriptors (the runtime's own file, the trace table; recordings have others), which the kernel itself refuses
 * with EBADF for everything that needs an open file (read, mmap, ioctl, poll, epoll ...). What works on O_PATH descriptors, and only that, is refused here. */
#include <linux/fcntl.h>
#include <linux/poll.h>

#include "inproc/arena.h"
#include "inproc/fds.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_watch.h"
#include "sphere/listener.h"
#include "sphere/sys/proc_files.h"
#include "sphere/sys/special.h"

static long forward(struct tblock *t, const uint64_t a[6]) { return gate_syscall((long)t->gpr[RAX], a); }

long sys_fd0(struct tblock *t, uint64_t a[6]) { return fd_is_own(a[0]) ? -EBADF : forward(t, a); }
long sys_fd1(struct tblock *t, uint64_t a[6]) { return fd_is_own(a[1]) ? -EBADF : forward(t, a); }
long sys_fd3(struct tblock *t, uint64_t a[6]) { return fd_is_own(a[3]) ? -EBADF : forward(t, a); }
long sys_fd02(struct tblock *t, uint64_t a[6]) { return fd_is_own(a[0]) || fd_is_own(a[2]) ? -EBADF : forward(t, a); }

long sys_close(struct tblock *t, uint64_t a[6]) {
    if (fd_is_own(a[0])) return -EBADF;
    return gate_syscall(__NR_close, a);
}

/* select would only look into the table of numbers, and find ours there. */
bool fd_selects_own(const uint64_t a[6]) {
    for (int own = fd_own(); own < fd_own() + (int)the_runtime.own_fds && own < (int)a[0]; own++)
        for (int i = 1; i <= 3; i++) {
            uint64_t word;
            if (a[i] && guest_read(&word, a[i] + (uint64_t)own / 64 * 8, 8) && (word >> (own % 64) & 1)) return true;
        }
    return false;
}

#define POLLS_MOST 65536

/* Numbers of ours among n that are polled: they are not open. With `answer`, says so in them; how many had another answer. */
static long polled_own(gaddr fds, uint64_t n, bool answer) {
    struct pollfd p;
    long changed = 0;
    for (uint64_t i = 0; i < n && i < POLLS_MOST; i++) {
        gaddr at = fds + i * sizeof p;
        if (!guest_read(&p, at, sizeof p)) break;
        if (p.fd < 0 || !fd_is_own((uint64_t)p.fd)) continue;
        changed += !answer || p.revents == 0;
        p.revents = POLLNVAL;
        if (answer) guest_write(at, &p, sizeof p);
    }
    return changed;
}

bool fd_polls_own(const uint64_t a[6]) { return (int)a[1] > 0 && polled_own(a[0], (uint32_t)a[1], false) > 0; }

/* There is an answer at once. */
long fd_poll_own(const uint64_t a[6]) {
    long ret = SYS(poll, a[0], a[1], 0);
    return ret < 0 ? ret : ret + polled_own(a[0], (uint32_t)a[1], true);
}

long sys_poll(struct tblock *t, uint64_t a[6]) { return fd_polls_own(a) ? fd_poll_own(a) : gate_syscall(__NR_poll, a); }

long sys_select(struct tblock *t, uint64_t a[6]) { return fd_selects_own(a) ? -EBADF : gate_syscall(__NR_select, a); }

#define RANGE_UNSHARE 2ul

void fd_leave_table(struct thread *t) {
    struct files *own = arena_alloc(sizeof *own);
    *own = *t->files;
    t->files = own;
}

long sys_close_range(struct tblock *t, uint64_t a[6]) {
    uint32_t lo = (uint32_t)a[0], hi = (uint32_t)a[1], own = (uint32_t)fd_own(), behind = own + the_runtime.own_fds;
    uint64_t flags = a[2];
    long ret = 0;
    if (lo > hi || behind <= lo || own > hi) {
        ret = gate_syscall(__NR_close_range, a);
    } else {
        if (own > lo) {
            ret = SYS(close_range, lo, own - 1, flags);
            flags &= ~RANGE_UNSHARE; /* done */
        }
        if (ret == 0 && behind <= hi) ret = SYS(close_range, behind, hi, flags);
    }
    if (ret == 0 && (a[2] & RANGE_UNSHARE)) fd_leave_table(t->thread);
    return ret;
}

/* Whether n numbers from `at` on are unused. */
static bool are_free(long at, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (SYS(fcntl, at + i, F_GETFD) >= 0) return false;
    return true;
}

long fd_move_own(int first, uint32_t n, int least) {
    long at = SYS(fcntl, first, F_DUPFD, least);
    if (at < 0) return at;
    for (uint32_t i = 1; i < n; i++) {
        if (are_free(at + i, n - i) && SYS(dup3, first + (int)i, at + i, 0) == at + i) continue;
        fds_close((uint32_t)at, (uint32_t)at + i - 1);
        return at + i > 60000 ? -EMFILE : fd_move_own(first, n, (int)at + 1);
    }
    return at;
}

/* The program wants our number: moves out of the way. */
static bool make_room(void) {
    struct files *f = thread_self()->files;
    static const int from[] = {900, 100, 3};
    uint32_t n = the_runtime.own_fds;
    long moved = fd_move_own(f->rt_fd, n, f->rt_fd + (int)n);
    for (size_t i = 0; moved < 0 && i < ARRAY_LEN(from); i++) moved = fd_move_own(f->rt_fd, n, from[i]);
    if (moved < 0) return false;
    fds_close((uint32_t)f->rt_fd, (uint32_t)f->rt_fd + n - 1);
    f->rt_fd = (int)moved;
    return true;
}

long sys_dup2(struct tblock *t, uint64_t a[6]) {
    if (fd_is_own(a[0])) return -EBADF;
    if (fd_is_own(a[1])) {
        if (SYS(fcntl, a[0], F_GETFD) < 0) return -EBADF;
        uint64_t limit[2];
        if (SYS(prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, limit) == 0 && a[1] >= limit[0]) return -EBADF;
        if (!make_room()) return -EMFILE;
    }
    return forward(t, a);
}

/* ---- directory listings ---- */

/* Cuts hidden entries out of what the kernel wrote; the new length. The two calls differ in where the name is. */
static long filter_entries(const struct proc_file *dir, char *records, long len, bool wide) {
    long kept = 0;
    for (long at = 0; at < len;) {
        uint16_t reclen;
        memcpy(&reclen, records + at + 16, sizeof reclen);
        if (!proc_hides(dir, records + at + (wide ? 19 : 18))) {
            memmove(records + kept, records + at, reclen);
            kept += reclen;
        }
        at += reclen;
    }
    return kept;
}

/* Of a folder with hidden entries: not even what lies behind the end may show them, and replay does not know them. */
static long list_folder(const struct proc_file *dir, uint64_t nr, const uint64_t a[6]) {
    char records[2048];
    uint64_t room[6] = {a[0], (uintptr_t)records, MIN((uint32_t)a[2], sizeof records)};
    bool wide = nr == __NR_getdents64, ranges = dir->what == PROC_FOLDER_MAPS && dir->self;
    for (;;) {
        long n = ranges ? proc_list_links((int)a[0], wide, records, room[2]) : gate_syscall(nr, room);
        if (n <= 0) return n;
        long kept = ranges ? n : filter_entries(dir, records, n, wide);
        if (kept == 0) continue;
        code_watch_before_kernel_write(a[1], (uint64_t)kept);
        return guest_write(a[1], records, (uint64_t)kept) ? kept : -EFAULT;
    }
}

long sys_getdents(struct tblock *t, uint64_t a[6]) {
    struct proc_file dir;
    return proc_folder((int)a[0], &dir) ? list_folder(&dir, t->gpr[RAX], a) : forward(t, a);
}

/* ---- descriptors in messages ---- */

struct message { /* struct msghdr */
    uint64_t name, name_len, iov, iov_len, control, control_len, flags;
};

bool fd_any_in_message(gaddr at, bool (*f)(int32_t fd, void *arg), void *arg) {
    struct message m;
    if (!guest_read(&m, at, sizeof m) || !m.control) return false;
    struct {
        uint64_t len;
        int32_t level, type;
    } c;
    for (uint64_t off = 0; off + sizeof c <= m.control_len && guest_read(&c, m.control + off, sizeof c);) {
        if (c.len < sizeof c) break;
        uint64_t end = MIN(off + c.len, m.control_len);
        for (uint64_t p = off + sizeof c; c.level == 1 && c.type == 1 /* SCM_RIGHTS */ && p + 4 <= end; p += 4) {
            int32_t fd;
            if (guest_read(&fd, m.control + p, 4) && f(fd, arg)) return true;
        }
        off += (c.len + 7) & ~7ull;
    }
    return false;
}

static bool is_own(int32_t fd, void *unused) {
    (void)unused;
    return fd_is_own((uint64_t)fd);
}

static bool sends_own(gaddr at) { return fd_any_in_message(at, is_own, 0); }

long sys_sendmsg(struct tblock *t, uint64_t a[6]) { return sends_own(a[1]) ? -EBADF : forward(t, a); }

long sys_sendmmsg(struct tblock *t, uint64_t a[6]) {
    for (uint64_t i = 0; i < MIN((uint32_t)a[2], 1024); i++)
        if (sends_own(a[1] + 64 * i)) {
            if (i == 0) return -EBADF;
            a[2] = i; /* those before it go out */
        }
    return forward(t, a);
}

long sys_ioctl(struct tblock *t, uint64_t a[6]) {
    return unlikely(listener_is_request(a[1])) ? listener_ioctl(a) : gate_syscall(__NR_ioctl, a);
}

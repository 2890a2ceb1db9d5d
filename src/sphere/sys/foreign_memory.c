/* Calls that write into the memory of another process: process_vm_writev, and /proc/PID/mem as a file. */
#include <linux/fcntl.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/code_files.h"
#include "sphere/mode.h"
#include "sphere/sys/model.h"
#include "sphere/sys/special.h"
#include "sphere/trace_table.h"

/* Copies len bytes at `from` to `to` in process tgid; how many were copied. */
static uint64_t copy_across(int tgid, enum letter_kind kind, gaddr to, gaddr from, uint64_t len) {
    uint8_t piece[TRACE_LETTER];
    uint64_t done = 0;
    while (done < len) {
        /* whole pages, so that a hole stops us where it would the kernel */
        uint64_t n = MIN(len - done, PAGE_SIZE - ((to + done) & (PAGE_SIZE - 1)));
        if (!guest_read(piece, from + done, n) || trace_write(tgid, kind, to + done, piece, (uint32_t)n) != 0) break;
        done += n;
    }
    return done;
}

static bool is_other_member(int tgid) { return tgid > 0 && tgid != SYS(getpid) && trace_is_member(tgid); }

/* ---- process_vm_writev ---- */

struct cursor { /* in an array of iovecs of ours */
    gaddr v;
    uint64_t n, i, off;
    struct iovec_raw now;
};

/* Bytes in a row from here on; 0: the end, or -EFAULT. */
static long row(struct cursor *c) {
    for (; c->i < c->n; c->i++, c->off = 0) {
        if (!guest_read(&c->now, c->v + c->i * sizeof c->now, sizeof c->now)) return -EFAULT;
        if (c->off < c->now.len) return (long)MIN(c->now.len - c->off, 1ull << 30);
    }
    return 0;
}

long sys_process_vm_writev(struct tblock *tb, uint64_t a[6]) {
    bool other = is_other_member((int)a[0]);
    if (!other && the_mode->own_memory_only && (int)a[0] != tb->thread->tgid) return -EPERM;
    if (!other || a[5] || a[2] > IOV_MOST || a[4] > IOV_MOST) return gate_syscall(__NR_process_vm_writev, a);
    long allowed = SYS(kill, a[0], 0);
    if (allowed < 0) return allowed;
    struct cursor here = {.v = a[1], .n = a[2]}, there = {.v = a[3], .n = a[4]};
    uint64_t done = 0;
    for (;;) {
        long from = row(&here), to = row(&there);
        if (from < 0 || to < 0) return done ? (long)done : -EFAULT;
        if (!from || !to) return (long)done;
        uint64_t n = (uint64_t)MIN(from, to);
        uint64_t got = copy_across((int)a[0], LETTER_WRITE, there.now.base + there.off, here.now.base + here.off, n);
        done += got;
        if (got < n) return done ? (long)done : -EFAULT;
        here.off += n;
        there.off += n;
    }
}

/* ---- /proc/PID/mem ---- */

/* Whose memory the descriptor is; 0: nobody's, or our own. */
int foreign_memory_owner(int fd) {
    char link[40], path[64];
    fmt_into(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = SYS(readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = '\0';
    if (!str_starts(path, "/proc/")) return 0;
    int pid = 0;
    for (char *at = path + 6; *at >= '0' && *at <= '9'; at++) pid = pid * 10 + (*at - '0');
    return is_other_member(pid) ? pid : 0;
}

bool foreign_memory_writev(int fd, gaddr v, uint64_t n, int64_t at, long *ret) {
    struct iovec_raw piece;
    gaddr to;
    if (n > IOV_MOST || !code_files_mem_range(fd, at, 0, &to) || !foreign_memory_owner(fd)) return false;
    *ret = 0;
    for (uint64_t i = 0; i < n; i++) {
        long got;
        if (!guest_read(&piece, v + i * sizeof piece, sizeof piece))
            got = -EFAULT;
        else if (!foreign_memory_write(fd, piece.base, piece.len, at == -1 ? -1 : at + *ret, &got))
            got = -EIO;
        if (got < 0 && !*ret) *ret = got;
        if (got < 0) break;
        *ret += got;
        if ((uint64_t)got < piece.len) break;
    }
    return true;
}

bool foreign_memory_write(int fd, gaddr from, uint64_t len, int64_t at, long *ret) {
    gaddr to;
    if (!code_files_mem_range(fd, at, 0, &to)) return false;
    int owner = foreign_memory_owner(fd);
    if (!owner) return false;
    uint64_t done = copy_across(owner, LETTER_POKE, to, from, len);
    if (at == -1) SYS(lseek, fd, to + done, 0 /* SEEK_SET */);
    *ret = done || !len ? (long)done : -EIO;
    return true;
}

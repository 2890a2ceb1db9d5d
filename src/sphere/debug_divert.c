/* System calls of a worker that has left the recording, because the debugger has changed something or calls a function: the
 * world is not there. Memory is given, what is printed is passed on, everything else fails. */
#include <linux/mman.h>

#include "inproc/sys.h"
#include "sphere/debug.h"
#include "sphere/sys/special.h"

static long print(uint64_t fd, gaddr from, uint64_t n) {
    char piece[1024];
    uint64_t done = 0;
    while (done < n) {
        uint64_t k = MIN(n - done, sizeof piece);
        if (!guest_read(piece, from + done, k)) return done ? (long)done : -EFAULT;
        long ret = SYS(write, fd, piece, k);
        if (ret <= 0) return done ? (long)done : ret;
        done += (uint64_t)ret;
    }
    return (long)done;
}

static long print_vector(uint64_t fd, gaddr v, uint64_t count) {
    uint64_t piece[2];
    long sum = 0;
    for (uint64_t i = 0; i < count && i < 1024 && guest_read(piece, v + 16 * i, 16); i++) {
        long ret = print(fd, piece[0], piece[1]);
        if (ret < 0) return sum ? sum : ret;
        sum += ret;
    }
    return sum;
}

long debug_call(struct tblock *tb, uint64_t nr, uint64_t a[6]) {
    struct thread *t = tb->thread;
    switch (nr) {
    case __NR_exit:
    case __NR_exit_group: debug_end(t, WORKER_EXITED, ((int)a[0] & 0xff) << 8, "");
    case __NR_write: return a[0] == 1 || a[0] == 2 ? print(a[0], a[1], a[2]) : -EBADF;
    case __NR_writev: return a[0] == 1 || a[0] == 2 ? print_vector(a[0], a[1], a[2]) : -EBADF;
    case __NR_mmap: return a[3] & MAP_ANONYMOUS ? sys_mmap(tb, a) : -EBADF;
    case __NR_munmap: return sys_munmap(tb, a);
    case __NR_mprotect: return sys_mprotect(tb, a);
    case __NR_mremap: return sys_mremap(tb, a);
    case __NR_madvise: return sys_madvise(tb, a);
    case __NR_brk: return sys_brk(tb, a);
    case __NR_rt_sigprocmask: return signals_sigprocmask(tb, a);
    case __NR_getpid: return t->process->pid;
    case __NR_gettid: return t->tid;
    case __NR_clock_gettime: {
        int64_t now[2];
        long ret = SYS(clock_gettime, a[0], now);
        return ret ? ret : guest_write(a[1], now, sizeof now) ? 0 : -EFAULT;
    }
    case __NR_futex: return 0;
    case __NR_sched_yield: return 0;
    default: return -ENOSYS;
    }
}

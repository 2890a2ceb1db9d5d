/* Leaving what was shared: descriptors, namespaces. */
#include <linux/nsfs.h>
#include <linux/sched.h>

#include "ckpt/rt/save.h"
#include "inproc/sys.h"
#include "sphere/shared.h"
#include "sphere/sys/special.h"

#define NEWTIME 0x80ul

/* The kernel gives these to processes with a single thread only; threads of the runtime do not count. */
static bool asks_for_one_thread(uint64_t flags) {
    return flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | NEWTIME);
}

static long left_pid; /* of the process, if its children are in another namespace of processes */

static long call_alone(long nr, const uint64_t a[6]) {
    save_without_thread();
    bool paged = shared_end_pager();
    long ret = gate_syscall(nr, a);
    if (paged) shared_start_pager(thread_self());
    return ret;
}

static long call(long nr, const uint64_t a[6], uint64_t flags) {
    return asks_for_one_thread(flags) ? call_alone(nr, a) : gate_syscall(nr, a);
}

/* Who has left for another namespace of processes can make no thread any more, so the pager has to be there before; what is asked
 * for besides may have to come without it. flags: the argument, which says what is asked for. */
static long leave_processes(long nr, const uint64_t a[6], int flags) {
    uint64_t first[6] = {a[0], a[1]}, then[6] = {a[0], a[1]};
    first[flags] &= ~(uint64_t)CLONE_NEWPID;
    if (asks_for_one_thread(first[flags])) {
        long ret = call_alone(nr, first);
        if (ret < 0) return ret;
        then[flags] = CLONE_NEWPID;
    }
    shared_start_pager(thread_self());
    long ret = gate_syscall(nr, then);
    if (ret == 0) left_pid = SYS(getpid);
    return ret;
}

/* What is asked for wants a process with a single thread, which could not start the pager again: because its children are to have another
 * time, or are in another namespace of processes already. It could not give up the pages that it shares with others. */
static bool would_lose_pager(uint64_t kinds) {
    if (!shared_active || !asks_for_one_thread(kinds)) return false;
    return (kinds & NEWTIME) || left_pid == SYS(getpid);
}

long sys_unshare(struct tblock *t, uint64_t a[6]) {
    if (would_lose_pager(a[0])) return -EINVAL; /* as the kernel answers programs with threads */
    bool leaves = (a[0] & CLONE_NEWPID) && shared_is_on();
    long ret = leaves ? leave_processes(__NR_unshare, a, 0) : call(__NR_unshare, a, a[0]);
    if (ret == 0 && (a[0] & CLONE_FILES)) fd_leave_table(t->thread);
    return ret;
}

/* No flags stand for any kind, if it is one namespace. */
static uint64_t kinds_of(const uint64_t a[6]) {
    if (a[1]) return a[1];
    long kind = SYS(ioctl, a[0], NS_GET_NSTYPE, 0);
    return kind > 0 ? (uint64_t)kind : 0;
}

long sys_setns(struct tblock *t, uint64_t a[6]) {
    if (fd_is_own(a[0])) return -EBADF;
    uint64_t kinds = kinds_of(a);
    if (would_lose_pager(kinds)) return -EINVAL;
    return (kinds & CLONE_NEWPID) && shared_is_on() ? leave_processes(__NR_setns, a, 1) : call(__NR_setns, a, kinds);
}

/* Leaving what was shared: descriptors, namespaces. */
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

/* A thread cannot be made by who has left for another namespace of processes: then the pager has to stay. */
static long call_alone(long nr, const uint64_t a[6], uint64_t flags) {
    save_without_thread();
    bool paged = !(flags & CLONE_NEWPID) && shared_end_pager();
    long ret = gate_syscall(nr, a);
    if (paged) shared_start_pager(thread_self());
    return ret;
}

long sys_unshare(struct tblock *t, uint64_t a[6]) {
    long ret = asks_for_one_thread(a[0]) ? call_alone(__NR_unshare, a, a[0]) : gate_syscall(__NR_unshare, a);
    if (ret == 0 && (a[0] & CLONE_FILES)) fd_leave_table(t->thread);
    return ret;
}

/* The flags may be 0: any kind. */
long sys_setns(struct tblock *t, uint64_t a[6]) {
    if (fd_is_own(a[0])) return -EBADF;
    return a[1] && !asks_for_one_thread(a[1]) ? gate_syscall(__NR_setns, a) : call_alone(__NR_setns, a, a[1]);
}

/* Calls that wait with another signal mask in force. */
#include "inproc/sys.h"
#include "sphere/sys/special.h"

long sys_rt_sigsuspend(struct tblock *t, uint64_t a[6]) { return signals_with_mask(t, a, 0); }
long sys_ppoll(struct tblock *t, uint64_t a[6]) {
    return fd_polls_own(a) ? fd_poll_own(a) : signals_with_mask(t, a, 3);
}
long sys_epoll_pwait(struct tblock *t, uint64_t a[6]) { return signals_with_mask(t, a, 4); }

/* The mask comes as a pointer to {pointer, length}. */
long sys_pselect6(struct tblock *t, uint64_t a[6]) {
    struct {
        uint64_t mask, len;
    } arg;
    if (fd_selects_own(a)) return -EBADF;
    if (!a[5]) return gate_syscall(__NR_pselect6, a);
    if (!guest_read(&arg, a[5], sizeof arg)) return -EFAULT;
    uint64_t set = 0, copy;
    if (arg.mask) {
        if (!guest_read(&set, arg.mask, 8)) return -EFAULT;
        copy = set & ~SIGNALS_SYNC;
        arg.mask = (uint64_t)&copy;
    }
    a[5] = (uint64_t)&arg;
    long ret = gate_syscall(__NR_pselect6, a);
    if (arg.mask) signals_waited(t->thread, set, ret);
    return ret;
}

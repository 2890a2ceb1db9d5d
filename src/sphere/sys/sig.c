/* Calls that wait with another signal mask in force. */
#include "inproc/sys.h"
#include "sphere/sys/special.h"

long sys_rt_sigsuspend(struct tblock *t, uint64_t a[6]) { return signals_with_mask(t, __NR_rt_sigsuspend, a, 0); }

long sys_rt_sigpending(struct tblock *t, uint64_t a[6]) { return signals_issue(__NR_rt_sigpending, a); }

long sys_rt_sigtimedwait(struct tblock *t, uint64_t a[6]) { return signals_issue(__NR_rt_sigtimedwait, a); }

long sys_signalfd(struct tblock *t, uint64_t a[6]) {
    uint64_t set;
    if (guest_read(&set, a[1], sizeof set) && (set & SIGNALS_SYNC)) signals_watched = true;
    return gate_syscall((long)t->gpr[RAX], a);
}

long sys_ppoll(struct tblock *t, uint64_t a[6]) {
    return fd_polls_own(a) ? fd_poll_own(a) : signals_with_mask(t, __NR_ppoll, a, 3);
}
long sys_epoll_pwait(struct tblock *t, uint64_t a[6]) { return signals_with_mask(t, t->gpr[RAX], a, 4); }

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
        copy = signals_to_wait_with(t->thread, set);
        arg.mask = (uint64_t)&copy;
    }
    a[5] = (uint64_t)&arg;
    long ret = signals_issue_waiting(__NR_pselect6, a);
    if (arg.mask) signals_waited(t->thread, set, ret);
    return ret;
}

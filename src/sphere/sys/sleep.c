/* Sleeps. A kick (hurry.h) ends one like a signal, and the kernel says how much of it is left; the program, which knows nothing of the
 * kick, makes the call again. So what is left goes to the program only when the call is over for it, and is otherwise what the call
 * that is made again takes. */
#include <linux/time_types.h>

#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/sys/special.h"
#include "sphere/traced.h"

static bool goes_on(const struct tblock *tb) {
    const struct sleep_rest *rest = &tb->thread->sleep_rest;
    return unlikely(rest->next == tb->pc) && rest->sp == tb->gpr[RSP];
}

/* The argument behind `request` is where the program wants to have what is left. */
static long sleep_for(struct tblock *tb, long nr, const uint64_t a[6], int request) {
    struct thread *t = tb->thread;
    struct __kernel_timespec left;
    uint64_t b[6];
    memcpy(b, a, sizeof b);
    if (goes_on(tb)) b[request] = (uint64_t)t->sleep_rest.left;
    b[request + 1] = (uint64_t)&left;
    long ret = gate_syscall(nr, b);
    if (ret == GATE_ABORTED) return ret;
    t->sleep_rest.next = 0;
    if (ret != -EINTR) return ret;
    if (traced_undoes(t)) {
        t->sleep_rest = (struct sleep_rest){tb->pc, tb->gpr[RSP], {left.tv_sec, left.tv_nsec}};
        return GATE_ABORTED;
    }
    return !a[request + 1] || guest_write(a[request + 1], &left, sizeof left) ? ret : -EFAULT;
}

long sys_nanosleep(struct tblock *t, uint64_t a[6]) { return sleep_for(t, __NR_nanosleep, a, 0); }

long sys_clock_nanosleep(struct tblock *t, uint64_t a[6]) {
    bool is_until = a[1] & 1; /* TIMER_ABSTIME: nothing is left of that */
    return is_until ? gate_syscall(__NR_clock_nanosleep, a) : sleep_for(t, __NR_clock_nanosleep, a, 2);
}

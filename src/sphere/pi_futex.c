#include "sphere/pi_futex.h"

#include <linux/futex.h>
#include <linux/time_types.h>

#include "inproc/sys.h"
#include "log/events.h"
#include "sphere/gate.h"
#include "sphere/sys/model.h"
#include "sphere/trace_record.h"

static int command(const uint64_t a[6]) { return (int)a[1] & FUTEX_CMD_MASK; }

bool pi_futex_is(uint64_t nr, const uint64_t a[6]) {
    if (nr != __NR_futex) return false;
    switch (command(a)) {
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_TRYLOCK_PI:
    case FUTEX_UNLOCK_PI:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_CMP_REQUEUE_PI: return true;
    default: return false;
    }
}

static uint32_t own_tid(const struct tblock *tb) { return (uint32_t)tb->thread->tid; }

static long unlock(struct tblock *tb, const uint64_t a[6], uint32_t value) {
    uint32_t zero = 0;
    if ((value & FUTEX_TID_MASK) != own_tid(tb)) return -EPERM;
    if (!guest_write(a[0], &zero, 4)) return -EFAULT;
    if (value & FUTEX_WAITERS) SYS(futex, a[0], FUTEX_WAKE | (a[1] & FUTEX_PRIVATE_FLAG), 1, 0, 0, 0);
    return 0;
}

/* Who has waited may not be the only one. */
static long take(struct tblock *tb, const uint64_t a[6], uint32_t value) {
    uint32_t taken = own_tid(tb) | (value & (FUTEX_OWNER_DIED | FUTEX_WAITERS));
    if (tb->thread->awaited_pi == a[0]) taken |= FUTEX_WAITERS;
    tb->thread->awaited_pi = 0;
    return guest_write(a[0], &taken, 4) ? 0 : -EFAULT;
}

/* FUTEX_LOCK_PI's clock is the real one, always. */
static uint64_t wait_operation(const uint64_t a[6]) {
    uint64_t real = command(a) == FUTEX_LOCK_PI ? FUTEX_CLOCK_REALTIME : a[1] & FUTEX_CLOCK_REALTIME;
    return FUTEX_WAIT_BITSET | (a[1] & FUTEX_PRIVATE_FLAG) | (a[3] ? real : 0);
}

static long wait_for_owner(struct tblock *tb, const uint64_t a[6], uint32_t value,
                           long (*wait)(struct tblock *tb, uint64_t b[6])) {
    struct thread *t = tb->thread;
    uint32_t awaited = value | FUTEX_WAITERS;
    if (awaited != value) {
        if (!guest_write(a[0], &awaited, 4)) return -EFAULT;
        trace_record_wrote(t, a[0], 4, EVF_AT_GATE);
    }
    uint64_t b[6] = {a[0], wait_operation(a), awaited, a[3], 0, FUTEX_BITSET_MATCH_ANY};
    t->awaited_pi = a[0];
    long ret = wait(tb, b);
    if (ret != -ETIMEDOUT && ret != -EINVAL && ret != -EFAULT) return GATE_ABORTED;
    t->awaited_pi = 0;
    return ret;
}

/* The kernel looks at the time before it looks at the word: programs find out so which clocks and times it takes. */
static long check_timeout(const uint64_t a[6]) {
    struct __kernel_timespec ts;
    if (!a[3] || (command(a) != FUTEX_LOCK_PI && command(a) != FUTEX_LOCK_PI2)) return 0;
    if (!guest_read(&ts, a[3], sizeof ts)) return -EFAULT;
    return ts.tv_sec < 0 || (uint64_t)ts.tv_nsec >= 1000000000 ? -EINVAL : 0;
}

long pi_futex_call(struct tblock *tb, const uint64_t a[6], long (*wait)(struct tblock *tb, uint64_t b[6])) {
    uint32_t value;
    int op = command(a);
    if (op == FUTEX_WAIT_REQUEUE_PI || op == FUTEX_CMP_REQUEUE_PI) return -ENOSYS; /* as for kernels without them */
    long bad = check_timeout(a);
    if (bad) return bad;
    if ((a[1] & FUTEX_CLOCK_REALTIME) && op != FUTEX_LOCK_PI2) return -ENOSYS;
    if (a[0] % 4) return -EINVAL;
    model_before_kernel_write(__NR_futex, a);
    if (!guest_read(&value, a[0], 4)) return -EFAULT;
    if (op == FUTEX_UNLOCK_PI) return unlock(tb, a, value);
    uint32_t owner = value & FUTEX_TID_MASK;
    if (!owner) return take(tb, a, value);
    if (owner == own_tid(tb)) return -EDEADLK;
    if (SYS(tkill, owner, 0) == -ESRCH) return -ESRCH;
    return op == FUTEX_TRYLOCK_PI ? -EAGAIN : wait_for_owner(tb, a, value, wait);
}

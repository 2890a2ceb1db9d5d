#include "sphere/limits.h"

#include <linux/capability.h>

#include "inproc/fmt.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/sys/special.h"
#include "sphere/thread.h"

#define RLIMIT_DATA_ 2
#define RLIMIT_STACK_ 3
#define RLIMIT_AS_ 9

static struct limit *emulated(struct limits *l, uint64_t kind) {
    return (uint32_t)kind == RLIMIT_AS_ ? &l->as : (uint32_t)kind == RLIMIT_DATA_ ? &l->data : NULL;
}

/* As wide as we may: any, with the privilege; else up to the hard one. */
static void widen(int kind, const struct limit *now) {
    struct limit any = {LIMIT_INFINITY, LIMIT_INFINITY}, most = {now->hard, now->hard};
    if (now->soft == LIMIT_INFINITY) return;
    if (SYS(prlimit64, 0, kind, &any, 0) != 0) SYS(prlimit64, 0, kind, &most, 0);
}

static uint64_t hex(const char **s) {
    uint64_t v = 0;
    for (;; ++*s) {
        char c = **s;
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v << 4 | (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    if (**s == ':') ++*s;
    return v;
}

void limits_start(struct limits *l, const char *text) {
    SYS(prlimit64, 0, RLIMIT_AS_, 0, &l->as);
    SYS(prlimit64, 0, RLIMIT_DATA_, 0, &l->data);
    widen(RLIMIT_AS_, &l->as);
    widen(RLIMIT_DATA_, &l->data);
    if (!text) return;
    l->as.soft = hex(&text);
    l->as.hard = hex(&text);
    l->data.soft = hex(&text);
    l->data.hard = hex(&text);
}

void limits_to_text(const struct limits *l, char *out, size_t cap) {
    fmt_into(out, cap, "%lx:%lx:%lx:%lx", l->as.soft, l->as.hard, l->data.soft, l->data.hard);
}

void limits_to_kernel(const struct limits *l) {
    SYS(prlimit64, 0, RLIMIT_AS_, &l->as, 0);
    SYS(prlimit64, 0, RLIMIT_DATA_, &l->data, 0);
}

/* ---- system calls ---- */

static bool may_raise(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}, {0}};
    return SYS(capget, &head, data) == 0 && (data[0].effective & (1u << CAP_SYS_RESOURCE));
}

static long set(struct process *p, struct limit *l, gaddr from) {
    struct limit to;
    if (!guest_read(&to, from, sizeof to)) return -EFAULT;
    if (to.soft > to.hard) return -EINVAL;
    if (to.hard > l->hard && !may_raise()) return -EPERM;
    lock_take(&p->lock);
    *l = to;
    lock_drop(&p->lock);
    return 0;
}

long sys_getrlimit(struct tblock *t, uint64_t a[6]) {
    struct limit *l = emulated(&t->thread->process->limits, a[0]);
    if (!l) return gate_syscall(__NR_getrlimit, a);
    return guest_write(a[1], l, sizeof *l) ? 0 : -EFAULT;
}

static bool is_own(const struct process *p, uint64_t pid) { return !(uint32_t)pid || (int)pid == p->pid; }

uint64_t limits_new_stack(const struct process *p, uint64_t nr, const uint64_t a[6]) {
    struct limit to;
    bool old = nr == __NR_setrlimit;
    if (p->shares_memory) return 0; /* the stack is another's */
    if ((!old && nr != __NR_prlimit64) || (uint32_t)a[old ? 0 : 1] != RLIMIT_STACK_ || (!old && !is_own(p, a[0])))
        return 0;
    gaddr from = a[old ? 1 : 2];
    return from && guest_read(&to, from, sizeof to) ? to.soft : 0;
}

static long set_in_kernel(const struct process *p, uint64_t nr, uint64_t a[6]) {
    uint64_t stack = limits_new_stack(p, nr, a); /* before prlimit64 overwrites it */
    long ret = gate_syscall(nr, a);
    if (stack && ret == 0) aspace_limit_stack(stack, true);
    return ret;
}

long sys_setrlimit(struct tblock *t, uint64_t a[6]) {
    struct process *p = t->thread->process;
    struct limit *l = emulated(&p->limits, a[0]);
    return l ? set(p, l, a[1]) : set_in_kernel(p, __NR_setrlimit, a);
}

/* The limits of other processes are in their own hands, as far as we emulate them. */
long sys_prlimit64(struct tblock *t, uint64_t a[6]) {
    struct process *p = t->thread->process;
    struct limit *l = emulated(&p->limits, a[1]);
    if (!l || !is_own(p, a[0])) return set_in_kernel(p, __NR_prlimit64, a);
    struct limit old = *l;
    if (a[2]) {
        long ret = set(p, l, a[2]);
        if (ret) return ret;
    }
    return !a[3] || guest_write(a[3], &old, sizeof old) ? 0 : -EFAULT;
}

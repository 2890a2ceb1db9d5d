#include "sphere/listener.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_watch.h"
#include "sphere/gate.h"
#include "sphere/mode.h"
#include "sphere/sys/model.h"
#include "sphere/sys/special.h"
#include "sphere/trace_table.h"
#include "sphere/traced.h"

#define IOCTL_RECV 0xc0502100u
#define IOCTL_SEND 0xc0182101u
#define IOCTL_FAMILY 0x2100u
#define PATIENCE 1000 /* ms, until who writes is taken for dead */

/* ---- the kernel's filter ---- */

static long add(uint64_t flags, const struct sock_filter *insn, uint16_t n) {
    struct {
        uint16_t n;
        uint16_t pad[3];
        const struct sock_filter *insn;
    } program = {.n = n, .insn = insn};
    return SYS(seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

long listener_make(uint64_t flags) {
    uint64_t here = (uint64_t)ask_done; /* the pc is behind the instruction then */
    if (!trace_table()) return -EINVAL; /* no other process could let a call go on */
    const struct sock_filter insn[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)here, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(here >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return add(flags, insn, ARRAY_LEN(insn));
}

long listener_sync(void) {
    const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return add(SECCOMP_FILTER_FLAG_TSYNC, &allow, 1);
}

/* ---- who asks ---- */

static bool take(struct trace_asking *e, uint32_t from) {
    return __atomic_compare_exchange_n(&e->state, &from, ASKING_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void leave(struct trace_asking *e, uint32_t state) { __atomic_store_n(&e->state, state, __ATOMIC_RELEASE); }

static void begin(const struct thread *t) {
    struct trace_table *table = trace_table();
    for (struct trace_asking *e = table ? table->asking : NULL; e && e < table->asking + TRACE_ASKING; e++) {
        bool is_left = e->state == ASKING_FILLED && SYS(kill, e->tgid, 0) == -ESRCH; /* was killed meanwhile */
        if (!take(e, is_left ? ASKING_FILLED : ASKING_FREE)) continue;
        e->tgid = t->tgid;
        e->tid = t->tid;
        e->n = 0;
        leave(e, ASKING_FILLED);
        return;
    }
}

long listener_wait(struct tblock *tb, uint64_t nr, const uint64_t a[6]) {
    struct thread *t = tb->thread;
    begin(t);
    __atomic_store_n(&t->in_call, true, __ATOMIC_RELAXED);
    __asm__ volatile("" ::: "memory");
    if (unlikely(code_watch_protected || track_closes)) model_before_kernel_write(nr, a);
    long ret = gate_ask((long)nr, a);
    __atomic_store_n(&t->in_call, false, __ATOMIC_RELEASE);
    return unlikely(ret == -EINTR) && traced_undoes(t) ? GATE_ABORTED : ret;
}

/* As if it had written that itself, in front of its call. */
static void note_written(struct thread *t, const struct trace_asking *e) {
    for (uint32_t i = 0; i < e->n; i++) {
        gaddr addr = e->written[i].addr;
        size_t len = e->written[i].len;
        lock_take(&cache_lock);
        aspace_note_changed(addr, addr + len);
        code_watch_forget(addr, addr + len);
        lock_drop(&cache_lock);
        if (the_mode->trace_wrote) the_mode->trace_wrote(t, addr, len, EVF_AT_GATE);
    }
}

void listener_done(struct thread *t) {
    struct trace_table *table = trace_table();
    for (struct trace_asking *e = table ? table->asking : NULL; e && e < table->asking + TRACE_ASKING; e++) {
        if (e->tid != t->tid || e->tgid != t->tgid || __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == ASKING_FREE)
            continue;
        for (int i = 0; !take(e, ASKING_FILLED) && i < PATIENCE; i++) trace_futex_wait(&e->state, ASKING_BUSY, 1);
        note_written(t, e);
        leave(e, ASKING_FREE);
        return;
    }
}

long listener_ask(struct tblock *t, uint64_t nr, const uint64_t a[6]) {
    long ret = listener_wait(t, nr, a);
    listener_done(t->thread);
    return ret;
}

/* ---- who is asked ---- */

static long write_across(int tgid, gaddr addr, const void *bytes, uint32_t len) {
    struct iovec_raw from = {(uint64_t)bytes, len}, to = {addr, len};
    return SYS(process_vm_writev, tgid, &from, 1, &to, 1, 0) == (long)len ? 0 : -EIO;
}

bool listener_writes(int tgid, gaddr addr, const void *bytes, uint32_t len, long *ret) {
    struct trace_table *table = trace_table();
    for (struct trace_asking *e = table ? table->asking : NULL; e && e < table->asking + TRACE_ASKING; e++) {
        if (e->tgid != tgid || !take(e, ASKING_FILLED)) continue;
        *ret = e->tgid != tgid || e->n == TRACE_WRITTEN ? -EIO : write_across(tgid, addr, bytes, len);
        if (*ret == 0) {
            e->written[e->n].addr = addr;
            e->written[e->n++].len = len;
        }
        leave(e, ASKING_FILLED);
        return true;
    }
    return false;
}

/* A question that a process of the sphere has asked is known by the place that it came from. */
static void received(gaddr at) {
    struct seccomp_notif n;
    struct trace_table *table = trace_table();
    if (!table || !guest_read(&n, at, sizeof n) || n.data.instruction_pointer != (uint64_t)ask_done) return;
    uint32_t i = __atomic_fetch_add(&table->n_asked, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&table->asked[i % TRACE_ASKED], n.id, __ATOMIC_RELEASE);
}

static bool is_ours(uint64_t id) {
    struct trace_table *table = trace_table();
    for (uint32_t i = 0; table && i < TRACE_ASKED; i++)
        if (__atomic_load_n(&table->asked[i], __ATOMIC_ACQUIRE) == id) return true;
    return false;
}

static long respond(const uint64_t a[6]) {
    struct seccomp_notif_resp r;
    if (!guest_read(&r, a[2], sizeof r)) return -EFAULT;
    if (r.flags != SECCOMP_USER_NOTIF_FLAG_CONTINUE || r.error || r.val || !is_ours(r.id))
        return gate_syscall(__NR_ioctl, a);
    r.val = LISTENER_CONTINUES;
    r.flags = 0;
    const uint64_t b[6] = {a[0], a[1], (uint64_t)&r};
    return gate_syscall(__NR_ioctl, b);
}

bool listener_is_request(uint64_t request) { return (request & 0xff00) == IOCTL_FAMILY; }

long listener_ioctl(const uint64_t a[6]) {
    if ((uint32_t)a[1] == IOCTL_SEND) return respond(a);
    long ret = gate_syscall(__NR_ioctl, a);
    if ((uint32_t)a[1] == IOCTL_RECV && ret == 0) received(a[2]);
    return ret;
}

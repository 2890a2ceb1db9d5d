/* Classic BPF over struct seccomp_data: the kernel's checks, the kernel's arithmetic, the kernel's actions. */
#include "sphere/seccomp.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

#include "inproc/arena.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/gate.h"
#include "sphere/listener.h"
#include "sphere/mode.h"
#include "sphere/signals.h"
#include "sphere/traced.h"

#define SIGSYS_ 31
#define SIGKILL_ 9
#define SYS_SECCOMP_ 1
#define PATH_INSNS_MAX 32768 /* MAX_INSNS_PER_PATH; each filter counts four more than it has */
#define FILTER_COST 4
#define ERRNO_MAX 4095

struct seccomp_filter {
    const struct seccomp_filter *before;
    uint32_t total; /* cost of this one and all before it */
    bool listens;   /* somebody may be asked (listener.h) */
    uint32_t n;
    struct sock_filter insn[];
};

/* ---- checking ---- */

static bool known_code(uint16_t code) {
    switch (code) {
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_LD | BPF_W | BPF_ABS:
    case BPF_LD | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_W | BPF_LEN:
    case BPF_LD | BPF_IMM:
    case BPF_LDX | BPF_IMM:
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX:
    case BPF_MISC | BPF_TAX:
    case BPF_MISC | BPF_TXA:
    case BPF_ALU | BPF_NEG:
    case BPF_JMP | BPF_JA: return true;
    }
    uint16_t op = BPF_OP(code);
    if (code & ~(0x07 | 0xf0 | BPF_X)) return false;
    if (BPF_CLASS(code) == BPF_ALU) return op <= BPF_RSH || op == BPF_XOR;
    if (BPF_CLASS(code) == BPF_JMP) return op == BPF_JEQ || op == BPF_JGT || op == BPF_JGE || op == BPF_JSET;
    return false;
}

static bool good_operand(const struct sock_filter *f, uint32_t i, uint32_t n) {
    uint32_t left = n - i - 1;
    switch (f->code) {
    case BPF_LD | BPF_W | BPF_ABS: return f->k < sizeof(struct seccomp_data) && !(f->k & 3);
    case BPF_ALU | BPF_DIV | BPF_K: return f->k != 0;
    case BPF_ALU | BPF_LSH | BPF_K:
    case BPF_ALU | BPF_RSH | BPF_K: return f->k < 32;
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX: return f->k < BPF_MEMWORDS;
    case BPF_JMP | BPF_JA: return f->k < left;
    }
    return BPF_CLASS(f->code) != BPF_JMP || (f->jt < left && f->jf < left);
}

/* No scratch word is read before it was written, on any path. */
static bool good_scratch(const struct sock_filter *f, uint32_t n, uint16_t *valid) {
    uint16_t now = 0;
    memset(valid, 0xff, n * sizeof *valid);
    for (uint32_t i = 0; i < n; i++) {
        now &= valid[i];
        switch (f[i].code) {
        case BPF_ST:
        case BPF_STX: now |= (uint16_t)(1u << f[i].k); break;
        case BPF_LD | BPF_MEM:
        case BPF_LDX | BPF_MEM:
            if (!(now & (1u << f[i].k))) return false;
            break;
        case BPF_JMP | BPF_JA:
            valid[i + 1 + f[i].k] &= now;
            now = 0xffff;
            break;
        default:
            if (BPF_CLASS(f[i].code) != BPF_JMP) break;
            valid[i + 1 + f[i].jt] &= now;
            valid[i + 1 + f[i].jf] &= now;
            now = 0xffff;
        }
    }
    return true;
}

static bool good_program(const struct sock_filter *f, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!known_code(f[i].code) || !good_operand(&f[i], i, n)) return false;
    uint16_t valid[BPF_MAXINSNS];
    return BPF_CLASS(f[n - 1].code) == BPF_RET && good_scratch(f, n, valid);
}

/* ---- running ---- */

static uint32_t alu(uint16_t op, uint32_t a, uint32_t b) {
    switch (op) {
    case BPF_ADD: return a + b;
    case BPF_SUB: return a - b;
    case BPF_MUL: return a * b;
    case BPF_DIV: return a / b;
    case BPF_OR: return a | b;
    case BPF_AND: return a & b;
    case BPF_XOR: return a ^ b;
    case BPF_LSH: return a << (b & 31);
    case BPF_RSH: return a >> (b & 31);
    default: return 0 - a; /* BPF_NEG */
    }
}

static bool holds(uint16_t op, uint32_t a, uint32_t b) {
    switch (op) {
    case BPF_JEQ: return a == b;
    case BPF_JGT: return a > b;
    case BPF_JGE: return a >= b;
    default: return (a & b) != 0; /* BPF_JSET */
    }
}

static uint32_t run(const struct seccomp_filter *p, const struct seccomp_data *data) {
    uint32_t a = 0, x = 0, word[BPF_MEMWORDS] = {0};
    for (const struct sock_filter *f = p->insn;; f++) {
        uint32_t operand = BPF_SRC(f->code) == BPF_X ? x : f->k;
        switch (f->code) {
        case BPF_RET | BPF_K: return f->k;
        case BPF_RET | BPF_A: return a;
        case BPF_LD | BPF_W | BPF_ABS: memcpy(&a, (const char *)data + f->k, sizeof a); break;
        case BPF_LD | BPF_W | BPF_LEN: a = sizeof *data; break;
        case BPF_LDX | BPF_W | BPF_LEN: x = sizeof *data; break;
        case BPF_LD | BPF_IMM: a = f->k; break;
        case BPF_LDX | BPF_IMM: x = f->k; break;
        case BPF_LD | BPF_MEM: a = word[f->k]; break;
        case BPF_LDX | BPF_MEM: x = word[f->k]; break;
        case BPF_ST: word[f->k] = a; break;
        case BPF_STX: word[f->k] = x; break;
        case BPF_MISC | BPF_TAX: x = a; break;
        case BPF_MISC | BPF_TXA: a = x; break;
        case BPF_JMP | BPF_JA: f += f->k; break;
        default:
            if (BPF_CLASS(f->code) == BPF_JMP) {
                f += holds(BPF_OP(f->code), a, operand) ? f->jt : f->jf;
            } else {
                if (BPF_OP(f->code) == BPF_DIV && operand == 0) return 0;
                a = alu(BPF_OP(f->code), a, operand);
            }
        }
    }
}

/* ---- actions ---- */

static void sigsys(struct siginfo_raw *info, const struct seccomp_data *data, uint32_t ret) {
    memset(info, 0, sizeof *info);
    info->signo = SIGSYS_;
    info->code = SYS_SECCOMP_;
    info->err = (int32_t)(ret & SECCOMP_RET_DATA);
    info->w[0] = data->instruction_pointer;
    info->w[1] = (uint32_t)data->nr | (uint64_t)data->arch << 32;
}

/* Another thread of the same process, as the program knows them. */
static bool is_sibling(const struct thread *self, const struct thread *t) {
    return t != self && t->in_use && !t->ended && !t->service && t->process == self->process;
}

static bool is_alone(const struct thread *self) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (is_sibling(self, t)) return false;
    return true;
}

static void kill_by(struct tblock *t, const struct seccomp_data *data, uint32_t ret, bool whole_process) {
    if (!whole_process && !is_alone(t->thread)) {
        if (the_mode->thread_killed) the_mode->thread_killed(t->thread, SIGSYS_);
        thread_exit(t->thread, SIGSYS_);
    }
    struct siginfo_raw info;
    sigsys(&info, data, ret);
    signals_die(t->thread, &info);
}

/* SIGSYS, as if the call had not been made: rax still holds its number. */
static long trap(struct tblock *t, const struct seccomp_data *data, uint32_t ret) {
    struct thread *th = t->thread;
    t->gpr[RCX] = t->pc;
    t->gpr[R11] = t->rflags;
    signals_raise_fault(t, SIGSYS_, SYS_SECCOMP_, data->instruction_pointer);
    if (th->n_pending) sigsys(&th->pending[th->n_pending - 1].info, data, ret);
    signals_safepoint(t);
    return SECCOMP_DELIVERED;
}

#define ASK_TRACER (INT64_MIN + 5) /* as SECCOMP_ALLOWED: the tracer has to be asked first */
#define ASK_LISTENER (INT64_MIN + 6)

/* *message: what a tracer is told. */
static long apply_filters(struct tblock *t, const struct seccomp_data *data, uint16_t *message) {
    uint32_t ret = SECCOMP_RET_ALLOW;
    const struct seccomp_filter *by = NULL;
    for (const struct seccomp_filter *f = t->thread->seccomp.last; f; f = f->before) {
        uint32_t one = run(f, data);
        /* the strictest wins; KILL_PROCESS is the lowest as a signed number */
        if ((int32_t)(one & SECCOMP_RET_ACTION_FULL) >= (int32_t)(ret & SECCOMP_RET_ACTION_FULL)) continue;
        ret = one;
        by = f;
    }
    switch (ret & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG: return SECCOMP_ALLOWED;
    case SECCOMP_RET_ERRNO: return -(long)MIN(ret & SECCOMP_RET_DATA, ERRNO_MAX);
    case SECCOMP_RET_TRACE: *message = ret & SECCOMP_RET_DATA; return ASK_TRACER;
    case SECCOMP_RET_USER_NOTIF: return by->listens ? ASK_LISTENER : -ENOSYS;
    case SECCOMP_RET_TRAP: return trap(t, data, ret);
    case SECCOMP_RET_KILL_THREAD: kill_by(t, data, ret, false); break;
    default: kill_by(t, data, ret, true);
    }
    return -ENOSYS;
}

static long judge(struct tblock *t, uint64_t nr, const uint64_t a[6], uint16_t *message) {
    struct seccomp_data data = {.nr = (int)nr, .arch = AUDIT_ARCH_X86_64, .instruction_pointer = t->pc};
    memcpy(data.args, a, sizeof data.args);
    const struct legacy_call *c = &t->thread->legacy;
    if (c->under_way && c->nr) {
        data.nr = (int)c->nr;
        data.arch = AUDIT_ARCH_I386;
    }
    return apply_filters(t, &data, message);
}

static long ask_listener(struct tblock *t, uint64_t nr, const uint64_t a[6]) {
    if (!the_mode->ask) return SECCOMP_ASKED;
    long ret = the_mode->ask(t, nr, a);
    if (ret == GATE_ABORTED) return SECCOMP_ABORTED;
    return ret == LISTENER_CONTINUES ? SECCOMP_ALLOWED : ret;
}

/* Only the thread itself can set its no_new_privs: it does so before anything that could depend on them. */
static void settle_privs(struct seccomp *s) {
    if (likely(!__atomic_load_n(&s->owes_privs, __ATOMIC_RELAXED))) return;
    __atomic_store_n(&s->owes_privs, false, __ATOMIC_RELAXED);
    SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* At replay the tracer's stop has been passed, if there was one; what became of the call is in the log, a failure too. */
long seccomp_apply(struct tblock *t, uint64_t *nr, uint64_t a[6]) {
    settle_privs(&t->thread->seccomp);
    if (t->thread->seccomp.mode == SECCOMP_STRICT) {
        if (*nr == __NR_read || *nr == __NR_write || *nr == __NR_exit || *nr == __NR_rt_sigreturn)
            return SECCOMP_ALLOWED;
        struct siginfo_raw info = {.signo = SIGKILL_};
        signals_die(t->thread, &info);
    }
    uint16_t message = 0;
    long verdict = judge(t, *nr, a, &message);
    if (verdict == ASK_LISTENER) return ask_listener(t, *nr, a);
    if (verdict != ASK_TRACER) return verdict;
    if (!the_mode->kernel_signals) return SECCOMP_ALLOWED;
    if (!traced_is_asked(t->thread)) return -ENOSYS;
    if (!traced_at_filter(t, message)) return SECCOMP_DELIVERED;
    *nr = t->gpr[RAX];
    gate_args(t, a);
    verdict = judge(t, *nr, a, &message);
    if (verdict == ASK_LISTENER) return ask_listener(t, *nr, a);
    return verdict == ASK_TRACER ? SECCOMP_ALLOWED : verdict;
}

/* ---- installing ---- */

static struct lock add_lock;

void seccomp_hold(void) { lock_take(&add_lock); }
void seccomp_release(void) { lock_drop(&add_lock); }

long seccomp_set_strict(struct tblock *t) {
    struct seccomp *s = &t->thread->seccomp;
    if (s->mode == SECCOMP_FILTERS) return -EINVAL;
    s->mode = SECCOMP_STRICT;
    return 0;
}

static bool is_admin(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}, {0}};
    if (SYS(capget, &head, data) < 0) return false;
    return data[0].effective & (1u << CAP_SYS_ADMIN);
}

static bool has_no_new_privs(void) { return SYS(prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1; }

/* At replay it was allowed, whoever replays. */
static bool may_add(void) {
    if (!the_mode->kernel_signals) return true;
    return has_no_new_privs() || is_admin();
}

static struct seccomp_filter *filter_new(const struct seccomp *s, uint32_t n) {
    struct seccomp_filter *f = arena_alloc(sizeof *f + n * sizeof f->insn[0]);
    f->before = s->last;
    f->n = n;
    f->total = n + FILTER_COST + (s->last ? s->last->total : 0);
    return f;
}

static void push(struct seccomp *s, const struct seccomp_filter *f) {
    s->last = f;
    s->count++;
    __atomic_store_n(&s->mode, SECCOMP_FILTERS, __ATOMIC_RELEASE);
}

static bool has(const struct seccomp *s, const struct seccomp_filter *f) {
    for (const struct seccomp_filter *g = s->last; g; g = g->before)
        if (g == f) return true;
    return f == NULL;
}

/* Another thread of the process that cannot take over self's filters, because it has some of its own; 0 = none. */
static int odd_one_out(const struct thread *self) {
    for (struct thread *t = threads_first(); t; t = t->next) {
        if (!is_sibling(self, t) || t->seccomp.mode == SECCOMP_OFF) continue;
        if (t->seccomp.mode == SECCOMP_STRICT || !has(&self->seccomp, t->seccomp.last)) return t->tid;
    }
    return 0;
}

static void sync_threads(const struct thread *self) {
    bool privs = the_mode->kernel_signals && has_no_new_privs();
    for (struct thread *t = threads_first(); t; t = t->next)
        if (is_sibling(self, t)) {
            t->seccomp.last = self->seccomp.last;
            t->seccomp.count = self->seccomp.count;
            if (privs) __atomic_store_n(&t->seccomp.owes_privs, true, __ATOMIC_RELAXED);
            __atomic_store_n(&t->seccomp.mode, SECCOMP_FILTERS, __ATOMIC_RELEASE);
        }
}

#define WAIT_KILLABLE_RECV 32
#define KNOWN_FLAGS                                                                         \
    (SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW | \
     SECCOMP_FILTER_FLAG_TSYNC_ESRCH | SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE_RECV)

bool seccomp_makes_listener(const uint64_t a[6]) {
    return a[0] == SECCOMP_SET_MODE_FILTER && (a[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

static bool good_flags(uint64_t flags) {
    bool listens = flags & SECCOMP_FILTER_FLAG_NEW_LISTENER, says_esrch = flags & SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    if ((flags & WAIT_KILLABLE_RECV) && !listens) return false;
    return !(flags & ~(uint64_t)KNOWN_FLAGS) && !(listens && (flags & SECCOMP_FILTER_FLAG_TSYNC) && !says_esrch);
}

static bool has_listener(const struct seccomp *s) {
    for (const struct seccomp_filter *f = s->last; f; f = f->before)
        if (f->listens) return true;
    return false;
}

/* What the kernel has to know of a filter: that it is to ask, and whom. The listener, 0 or -errno. At replay it need not. */
static long tell_kernel(const struct seccomp *s, uint64_t flags) {
    if (!the_mode->ask) return 0;
    if (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) return listener_make(flags);
    return (flags & SECCOMP_FILTER_FLAG_TSYNC) && has_listener(s) ? listener_sync() : 0;
}

long seccomp_add(struct tblock *t, uint64_t flags, gaddr program) {
    struct thread *th = t->thread;
    struct seccomp *s = &th->seccomp;
    if (!good_flags(flags)) return -EINVAL;
    struct {
        uint16_t n;
        uint16_t pad[3];
        gaddr insns;
    } p;
    if (!guest_read(&p, program, sizeof p)) return -EFAULT;
    if (p.n == 0 || p.n > BPF_MAXINSNS) return -EINVAL;
    if (!may_add()) return -EACCES;
    struct sock_filter insn[BPF_MAXINSNS];
    if (!guest_read(insn, p.insns, p.n * sizeof *insn)) return -EFAULT;
    if (!good_program(insn, p.n)) return -EINVAL;
    if (s->mode == SECCOMP_STRICT) return -EINVAL;
    if ((s->last ? s->last->total : 0) + p.n + FILTER_COST > PATH_INSNS_MAX) return -ENOMEM;

    lock_take(&add_lock);
    int odd = flags & SECCOMP_FILTER_FLAG_TSYNC ? odd_one_out(th) : 0;
    long listener = odd ? 0 : tell_kernel(s, flags);
    if (!odd && listener >= 0) {
        struct seccomp_filter *f = filter_new(s, p.n);
        f->listens = flags & SECCOMP_FILTER_FLAG_NEW_LISTENER;
        memcpy(f->insn, insn, p.n * sizeof *insn);
        push(s, f);
        if (flags & SECCOMP_FILTER_FLAG_TSYNC) sync_threads(th);
    }
    lock_drop(&add_lock);
    if (odd) return flags & SECCOMP_FILTER_FLAG_TSYNC_ESRCH ? -ESRCH : odd;
    return listener;
}

long seccomp_action_avail(uint64_t flags, gaddr at) {
    uint32_t action;
    if (flags) return -EINVAL;
    if (!guest_read(&action, at, sizeof action)) return -EFAULT;
    switch (action) {
    case SECCOMP_RET_KILL_PROCESS:
    case SECCOMP_RET_KILL_THREAD:
    case SECCOMP_RET_TRAP:
    case SECCOMP_RET_ERRNO:
    case SECCOMP_RET_TRACE:
    case SECCOMP_RET_LOG:
    case SECCOMP_RET_ALLOW: return 0;
    case SECCOMP_RET_USER_NOTIF: return SYS(seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
    default: return -EOPNOTSUPP;
    }
}

/* ---- through execve: 16 hex digits per instruction, and LISTENS ---- */

#define INSN_DIGITS 16
#define LISTENS 'n'

size_t seccomp_text_size(const struct seccomp_filter *f) { return f->n * INSN_DIGITS + f->listens + 1; }

void seccomp_to_text(const struct seccomp_filter *f, char *out) {
    for (uint32_t i = 0; i < f->n; i++) {
        uint64_t v;
        memcpy(&v, &f->insn[i], sizeof v);
        for (int d = 0; d < INSN_DIGITS; d++) *out++ = "0123456789abcdef"[v >> (4 * d) & 15];
    }
    if (f->listens) *out++ = LISTENS;
    *out = '\0';
}

const struct seccomp_filter *seccomp_nth(const struct seccomp *s, int i) {
    const struct seccomp_filter *f = s->last;
    for (int k = s->count - 1; f && k > i; k--) f = f->before;
    return f;
}

bool seccomp_from_text(struct seccomp *s, const char *text) {
    size_t n = strlen(text) / INSN_DIGITS;
    const char *end = text + n * INSN_DIGITS;
    if (n == 0 || n > BPF_MAXINSNS || (*end && (*end != LISTENS || end[1]))) return false;
    struct seccomp_filter *f = filter_new(s, (uint32_t)n);
    f->listens = *end == LISTENS;
    for (size_t i = 0; i < n; i++) {
        uint64_t v = 0;
        for (int d = 0; d < INSN_DIGITS; d++, text++)
            v |= (uint64_t)(*text >= 'a' ? *text - 'a' + 10 : *text - '0') << (4 * d);
        memcpy(&f->insn[i], &v, sizeof v);
    }
    if (!good_program(f->insn, f->n)) return false;
    push(s, f);
    return true;
}

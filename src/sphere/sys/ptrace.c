/* ptrace, the tracer's side: what it asks of a tracee that has stopped is in the table, but for the tracee's memory. */
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/ptrace.h>
#include <linux/time_types.h>

#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/channel.h"
#include "sphere/code_watch.h"
#include "sphere/hurry.h"
#include "sphere/sigframe.h"
#include "sphere/sys/model.h"
#include "sphere/sys/ptrace.h"
#include "sphere/sys/special.h"
#include "sphere/task_state.h"
#include "sphere/trace_table.h"
#include "sphere/trace_watch.h"
#include "sphere/traced.h"

#define USER_DEBUGREG 848 /* offsetof(struct user, u_debugreg) */
#define USER_DEBUGREGS 8
#define USER_SIZE 928 /* the kernel's, which has two words behind them */
#define SIGCONT_ 18
#define SIGSTOP_ 19
#define SI_TKILL_ (-6)
#define SI_KERNEL_ 0x80
#define ATTACH_MS 2000

static int self_tgid(void) { return (int)SYS(getpid); }

static bool put_guest(gaddr to, const void *from, size_t len) {
    code_watch_before_kernel_write(to, len);
    return guest_write(to, from, len);
}

/* ---- beginning ---- */

static bool runs_runtime(int pid) {
    char path[40];
    struct stat own, its;
    fmt_into(path, sizeof path, "/proc/%d/exe", pid);
    return SYS(fstat, fd_own(), &own) == 0 && SYS(newfstatat, AT_FDCWD, path, &its, 0) == 0 &&
           own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

/* A process whose number is known may be so young that neither it nor its parent has said that it is one of us. */
static bool is_one_of_us(int pid) {
    if (trace_is_member(pid)) return true;
    if (pid <= 0 || !trace_is_member(task_parent(pid)) || !runs_runtime(pid)) return false;
    trace_add_member(pid);
    return true;
}

/* The process that a thread of the sphere belongs to; 0: it is none. */
static int process_of(int tid) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use && t->tid == tid) return t->tgid;
    if (trace_is_member(tid)) return tid;
    char path[40], text[512], *at;
    fmt_into(path, sizeof path, "/proc/%d/status", tid);
    long fd = SYS(openat, AT_FDCWD, path, 0);
    if (fd < 0) return 0;
    long n = SYS(read, fd, text, sizeof text - 1);
    SYS(close, fd);
    text[n > 0 ? n : 0] = '\0';
    for (at = text; at && !str_starts(at, "Tgid:"); at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {}
    int tgid = 0;
    for (at = at ? at + 5 : text + strlen(text); *at == '\t' || (*at >= '0' && *at <= '9'); at++)
        if (*at != '\t') tgid = tgid * 10 + (*at - '0');
    return is_one_of_us(tgid) ? tgid : 0;
}

/* Somebody outside of the sphere is the kernel's business in standard execution, and out of reach for a recording. */
static long outside(const uint64_t a[6]) {
    bool begins = a[0] == PTRACE_ATTACH || a[0] == PTRACE_SEIZE;
    if (the_channel) return !begins || SYS(kill, a[1], 0) == -ESRCH ? -ESRCH : -EPERM;
    return gate_syscall(__NR_ptrace, a);
}

/* Stopped by the kernel, as a program is that has sent itself SIGSTOP and waits for its tracer to come. */
static bool is_stopped(int tid) { return task_state(tid) == 'T'; }

/* It never comes to a safepoint, and the program knows nothing of it. */
static bool is_service(int tid, int tgid) { return tid != tgid && task_is_service(tid); }

/* Or another thread of its process has said meanwhile that it ends. */
static bool has_noticed(const struct tracee *e) {
    return __atomic_load_n(&e->noticed, __ATOMIC_ACQUIRE) ||
           __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != TRACEE_RUNS;
}

/* Until it knows: then it stops for us alone. One that the kernel has stopped, or was about to, is continued and stops again, for us.
 * False: it never will, having ended, or being a thread of the runtime's that had no name yet when we looked. */
static bool await_notice(struct tracee *e, int tid) {
    struct __kernel_timespec moment = {0, 1000000};
    for (int ms = 0; ms < ATTACH_MS && !has_noticed(e); ms++) {
        if (is_stopped(tid)) {
            e->group_stop = SIGSTOP_;
            if (e->seized) __atomic_or_fetch(&e->wants, TRACE_WANT_GROUP_STOP, __ATOMIC_SEQ_CST);
            hurry_stopped(e->tgid);
        }
        if (task_is_over(tid) || is_service(tid, e->tgid)) return has_noticed(e);
        SYS(nanosleep, &moment, 0);
    }
    return true;
}

static bool are_options(uint64_t options) { return !(options & ~(uint64_t)PTRACE_O_MASK); }

static long set_options(struct tracee *e, uint64_t options) {
    if (!are_options(options)) return -EINVAL;
    e->options = (uint32_t)options;
    return 0;
}

static long attach(const uint64_t a[6], bool seize) {
    int tid = (int)a[1], tgid = tid > 0 && trace_table() ? process_of(tid) : 0;
    if (!tgid) return outside(a);
    if (tgid == self_tgid()) return -EPERM;
    if (is_service(tid, tgid)) return -ESRCH;
    if (seize && (a[2] || !are_options(a[3]))) return -EIO;
    struct tracee *e = trace_claim(tid, tgid, self_tgid());
    if (!e) return -EPERM;
    e->seized = seize;
    e->options = seize ? (uint32_t)a[3] : 0;
    e->wants = seize ? 0 : TRACE_WANT_SIGSTOP;
    e->stop_code = SI_KERNEL_;
    trace_publish(e);
    trace_kick(tgid, tid);
    bool lent = trace_lend_turn(), noticed = await_notice(e, tid);
    trace_turn_back(lent);
    if (noticed) return 0;
    trace_free(e);
    return task_state(tid) == 'Z' ? -EPERM : -ESRCH;
}

/* ---- memory ---- */

static long peek(struct tracee *e, gaddr addr, gaddr to) {
    uint64_t word = 0;
    long ret = trace_ask(e, LETTER_PEEK, addr, &word, sizeof word);
    if (ret == 0 && !put_guest(to, &word, sizeof word)) ret = -EFAULT;
    return ret;
}

/* ---- registers ---- */

static bool is_debug_reg(uint64_t offset) {
    return offset >= USER_DEBUGREG && offset < USER_DEBUGREG + USER_DEBUGREGS * 8;
}

static long peek_user(const struct tracee *e, uint64_t offset, gaddr to) {
    uint64_t word = 0;
    if (offset % 8 || offset >= USER_SIZE) return -EIO;
    if (offset < sizeof e->regs) word = ((const uint64_t *)&e->regs)[offset / 8];
    if (is_debug_reg(offset)) word = e->debug_regs[(offset - USER_DEBUGREG) / 8];
    return put_guest(to, &word, sizeof word) ? 0 : -EFAULT;
}

static long poke_user(struct tracee *e, uint64_t offset, uint64_t word) {
    if (offset % 8 || offset >= USER_SIZE) return -EIO;
    if (offset < sizeof e->regs) {
        ((uint64_t *)&e->regs)[offset / 8] = word;
        e->regs_changed = true;
        return 0;
    }
    return is_debug_reg(offset) ? trace_watch_set(e, (unsigned)(offset - USER_DEBUGREG) / 8, word) : -EIO;
}

#define XSTATE_PARTS 464
#define XSTATE_HEAD 576

struct regset {
    void *bytes;
    size_t size;
    bool *changed;
};

/* In the area of NT_X86_XSTATE the kernel says which parts there are, where the processor stores nothing. */
static void note_parts(struct tracee *e, uint64_t parts) { *(uint64_t *)(e->extended + XSTATE_PARTS) = parts; }

static bool find_regset(struct tracee *e, uint64_t type, struct regset *out) {
    note_parts(e, type == NT_X86_XSTATE_ ? sigframe_extended_mask() : 0);
    switch (type) {
    case NT_PRSTATUS_: *out = (struct regset){&e->regs, sizeof e->regs, &e->regs_changed}; return true;
    case NT_FPREGSET_: *out = (struct regset){e->extended, FPREGS_SIZE, &e->extended_changed}; return true;
    case NT_X86_XSTATE_:
        *out = (struct regset){e->extended, sigframe_extended_size(), &e->extended_changed};
        return sigframe_extended_mask() && out->size <= TRACE_EXTENDED;
    default: return false;
    }
}

static long get_regs(struct tracee *e, uint64_t type, gaddr to) {
    struct regset r;
    if (!find_regset(e, type, &r)) return -EIO;
    return put_guest(to, r.bytes, r.size) ? 0 : -EFAULT;
}

static long set_regs(struct tracee *e, uint64_t type, gaddr from) {
    struct regset r;
    if (!find_regset(e, type, &r)) return -EIO;
    if (!guest_read(r.bytes, from, r.size)) return -EFAULT;
    *r.changed = true;
    return 0;
}

/* Whether the processor would take the state that lies there; if it cannot be read, that is said later. */
static bool is_loadable(gaddr at, uint64_t type) {
    uint8_t head[XSTATE_HEAD];
    size_t n = type == NT_X86_XSTATE_ ? XSTATE_HEAD : FPREGS_SIZE;
    return !guest_read(head, at, n) || sigframe_is_loadable(head, n == XSTATE_HEAD);
}

static long regset(struct tracee *e, uint64_t type, gaddr vector, bool set) {
    struct iovec_raw v;
    struct regset r;
    if (!guest_read(&v, vector, sizeof v)) return -EFAULT;
    if (!find_regset(e, type, &r) || v.len % 8) return -EINVAL;
    v.len = MIN(v.len, r.size);
    if (set && type != NT_PRSTATUS_ && v.len != r.size) return type == NT_X86_XSTATE_ ? -EFAULT : -EINVAL;
    if (set && type != NT_PRSTATUS_ && !is_loadable(v.base, type)) return -EINVAL;
    bool done = set ? guest_read(r.bytes, v.base, v.len) : put_guest(v.base, r.bytes, v.len);
    if (set && done) *r.changed = true;
    return done && put_guest(vector, &v, sizeof v) ? 0 : -EFAULT;
}

static long arch_prctl(struct tracee *e, uint64_t code, uint64_t addr) {
    switch (code) {
    case 0x1001: e->regs.gs_base = addr, e->regs_changed = true; return 0;
    case 0x1002: e->regs.fs_base = addr, e->regs_changed = true; return 0;
    case 0x1003: return put_guest(addr, &e->regs.fs_base, 8) ? 0 : -EFAULT;
    case 0x1004: return put_guest(addr, &e->regs.gs_base, 8) ? 0 : -EFAULT;
    default: return -EINVAL;
    }
}

/* ---- signals ---- */

static long get_siginfo(const struct tracee *e, gaddr to) {
    if (!e->has_siginfo) return -EINVAL;
    return put_guest(to, &e->info, sizeof e->info) ? 0 : -EFAULT;
}

static long sigmask(struct tracee *e, const uint64_t a[6], bool set) {
    if (a[2] != 8) return -EINVAL;
    if (set) {
        if (!guest_read(&e->sigmask, a[3], 8)) return -EFAULT;
        e->mask_changed = true;
        return 0;
    }
    return put_guest(a[3], &e->sigmask, 8) ? 0 : -EFAULT;
}

static long get_call(const struct tracee *e, uint64_t size, gaddr to) {
    struct syscall_info i = e->call;
    static const uint8_t sizes[] = {24, 80, 33, 84}; /* by op */
    uint64_t actual = sizes[i.op & 3];
    return put_guest(to, &i, MIN(size, actual)) ? (long)actual : -EFAULT;
}

/* ---- letting go ---- */

static long let_go(struct tracee *e, enum trace_resume how, uint64_t signal) {
    if (signal > NSIG_MAX) return -EIO;
    e->how = (uint8_t)how;
    e->signal = (int)signal;
    e->reported = true;
    if (how == RESUME_DETACH) e->tid = 0; /* the entry is its own now, until it has read this */
    __atomic_store_n(&e->state, TRACEE_RUNS, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&e->bell, 1, __ATOMIC_SEQ_CST);
    trace_futex_wake(&e->bell);
    return 0;
}

static long interrupt(struct tracee *e) {
    if (!e->seized) return -EIO;
    __atomic_or_fetch(&e->wants, TRACE_WANT_TRAP, __ATOMIC_SEQ_CST);
    trace_kick(e->tgid, e->tid); /* stopped, too: it may be about to make a call that waits */
    if (__atomic_load_n(&e->listens, __ATOMIC_ACQUIRE)) {
        e->was_interrupted = true;
        SYS(kill, e->tgid, SIGCONT_);
    }
    return 0;
}

static long listen(struct tracee *e) {
    if (!e->seized || e->status >> 16 != PTRACE_EVENT_STOP) return -EIO;
    return let_go(e, RESUME_LISTEN, 0);
}

/* ---- SIGSTOP ---- */

/* A stop that a tracer is told of is ours; of any other the kernel takes care. */
static bool stops_tracee(struct tracee *e, int code) {
    if (!e) return false;
    e->stop_code = code;
    e->stop_sender = self_tgid();
    __atomic_or_fetch(&e->wants, TRACE_WANT_SIGSTOP, __ATOMIC_SEQ_CST);
    if (e->tid != thread_self()->tid) trace_kick(e->tgid, e->tid);
    return true;
}

bool ptrace_stops(uint64_t nr, const uint64_t a[6]) {
    int tid = (int)(nr == __NR_tgkill ? a[1] : a[0]);
    uint64_t signo = nr == __NR_tgkill ? a[2] : a[1];
    bool sends = nr == __NR_kill || nr == __NR_tkill || nr == __NR_tgkill;
    return sends && signo == SIGSTOP_ && tid > 0 &&
           stops_tracee(trace_find(tid), nr == __NR_kill ? 0 /* SI_USER */ : SI_TKILL_);
}

/* What ends the process goes to this thread: from another, on its way there, a third could take it by sigtimedwait. */
static long kill_itself(const struct thread *t, int signo) {
    struct siginfo_raw info = {.signo = signo, .w = {(uint32_t)t->process->pid | (uint64_t)SYS(getuid) << 32}};
    uint64_t a[6] = {(uint64_t)t->process->pid, (uint64_t)t->tid, (uint64_t)signo, (uint64_t)&info};
    return gate_syscall(__NR_rt_tgsigqueueinfo, a);
}

long sys_kill(struct tblock *tb, uint64_t a[6]) {
    const struct thread *t = tb->thread;
    if (ptrace_stops(__NR_kill, a)) return 0;
    if ((int)a[0] == t->process->pid && signals_ends(t, (int)a[1])) return kill_itself(t, (int)a[1]);
    return gate_syscall(__NR_kill, a);
}

long sys_tkill(struct tblock *tb, uint64_t a[6]) {
    return ptrace_stops(__NR_tkill, a) ? 0 : gate_syscall(__NR_tkill, a);
}

long sys_tgkill(struct tblock *tb, uint64_t a[6]) {
    return ptrace_stops(__NR_tgkill, a) ? 0 : gate_syscall(__NR_tgkill, a);
}

/* ---- the call ---- */

static long of_stopped(struct tracee *e, const uint64_t a[6]) {
    uint64_t word = a[3];
    switch (a[0]) {
    case PTRACE_PEEKTEXT:
    case PTRACE_PEEKDATA: return peek(e, a[2], a[3]);
    case PTRACE_POKETEXT:
    case PTRACE_POKEDATA: return trace_ask(e, LETTER_POKE, a[2], &word, sizeof word);
    case PTRACE_PEEKUSR: return peek_user(e, a[2], a[3]);
    case PTRACE_POKEUSR: return poke_user(e, a[2], a[3]);
    case PTRACE_GETREGS_: return get_regs(e, NT_PRSTATUS_, a[3]);
    case PTRACE_SETREGS_: return set_regs(e, NT_PRSTATUS_, a[3]);
    case PTRACE_GETFPREGS_: return get_regs(e, NT_FPREGSET_, a[3]);
    case PTRACE_SETFPREGS_: return set_regs(e, NT_FPREGSET_, a[3]);
    case PTRACE_GETREGSET: return regset(e, a[2], a[3], false);
    case PTRACE_SETREGSET: return regset(e, a[2], a[3], true);
    case PTRACE_ARCH_PRCTL_: return arch_prctl(e, a[3], a[2]);
    case PTRACE_SETOPTIONS: return set_options(e, a[3]);
    case PTRACE_GETEVENTMSG: return put_guest(a[3], &e->message, 8) ? 0 : -EFAULT;
    case PTRACE_GETSIGINFO: return get_siginfo(e, a[3]);
    case PTRACE_SETSIGINFO: return guest_read(&e->info, a[3], sizeof e->info) ? 0 : -EFAULT;
    case PTRACE_PEEKSIGINFO: return 0;
    case PTRACE_GETSIGMASK: return sigmask(e, a, false);
    case PTRACE_SETSIGMASK: return sigmask(e, a, true);
    case PTRACE_GET_SYSCALL_INFO: return get_call(e, a[2], a[3]);
    case PTRACE_CONT: return let_go(e, RESUME_CONT, a[3]);
    case PTRACE_SYSCALL: return let_go(e, RESUME_SYSCALL, a[3]);
    case PTRACE_SYSEMU_: return let_go(e, RESUME_SYSEMU, a[3]);
    case PTRACE_SYSEMU_SINGLESTEP_: return let_go(e, RESUME_SYSEMU_STEP, a[3]);
    case PTRACE_SINGLESTEP: return let_go(e, RESUME_STEP, a[3]);
    case PTRACE_LISTEN: return listen(e);
    case PTRACE_DETACH: return let_go(e, RESUME_DETACH, a[3]);
    default: return -EIO;
    }
}

long sys_ptrace(struct tblock *tb, uint64_t a[6]) {
    switch (a[0]) {
    case PTRACE_TRACEME: return traced_me(tb->thread);
    case PTRACE_ATTACH: return attach(a, false);
    case PTRACE_SEIZE: return attach(a, true);
    }
    struct tracee *e = trace_find((int)a[1]);
    if (!e || e->tracer != self_tgid()) return outside(a);
    if (a[0] == PTRACE_INTERRUPT) return interrupt(e);
    if (a[0] == PTRACE_KILL) {
        SYS(kill, e->tgid, 9);
        return 0;
    }
    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != TRACEE_STOPPED) return -ESRCH;
    return of_stopped(e, a);
}

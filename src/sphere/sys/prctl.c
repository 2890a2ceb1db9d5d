/* prctl, seccomp, arch_prctl, modify_ldt: what would touch the runtime is done by us or refused; the rest goes to the kernel. */
#include <asm/prctl.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

#include "inproc/layout.h"
#include "inproc/sys.h"
#include "sphere/mode.h"
#include "sphere/runtime.h"
#include "sphere/segment.h"
#include "sphere/sigframe.h"
#include "sphere/sys/special.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#define MDWE_REFUSE_EXEC_GAIN 1ul
#define MDWE_NO_INHERIT 2ul
#ifndef ARCH_SHSTK_ENABLE
#define ARCH_SHSTK_ENABLE 0x5001
#endif

/* ---- memory that is either written or executed: kept here, because our own cache is both ---- */

static long set_mdwe(const uint64_t a[6]) {
    uint64_t bits = a[1], now = the_runtime.mdwe;
    if (a[2] || a[3] || a[4] || (bits & ~(MDWE_REFUSE_EXEC_GAIN | MDWE_NO_INHERIT))) return -EINVAL;
    if ((bits & MDWE_NO_INHERIT) && !(bits & MDWE_REFUSE_EXEC_GAIN)) return -EINVAL;
    if (now && bits != now) return -EPERM; /* cannot be taken back */
    the_runtime.mdwe = (uint32_t)bits;
    return 0;
}

bool mdwe_refuses(int prot, bool was_executable) {
    if (likely(!the_runtime.mdwe) || !(prot & PROT_EXEC)) return false;
    return (prot & PROT_WRITE) || !was_executable;
}

/* ---- prctl ---- */

static long set_seccomp(struct tblock *t, const uint64_t a[6]) {
    switch (a[1]) {
    case SECCOMP_MODE_STRICT: return seccomp_set_strict(t);
    case SECCOMP_MODE_FILTER: return seccomp_add(t, 0, a[2]);
    default: return -EINVAL;
    }
}

/* Where argv, environment and auxv are shown from is the program's to say. The rest is bookkeeping of addresses that the
 * kernel knows less well than we do; the executable stays what it is. */
static long set_mm(const uint64_t a[6]) {
    if (a[1] == PR_SET_MM_EXE_FILE) return -EBUSY;
    return gate_syscall(__NR_prctl, a);
}

static long set_name(struct thread *t, const uint64_t a[6]) {
    long ret = gate_syscall(__NR_prctl, a);
    if (ret == 0) thread_take_name(t, a[1]);
    return ret;
}

/* While recording, the kernel knows no such word (thread_end.h). */
static long get_tid_address(const struct thread *t, const uint64_t a[6]) {
    if (!the_mode->before_clone) return gate_syscall(__NR_prctl, a);
    return guest_write(a[1], &t->clear_tid, 8) ? 0 : -EFAULT;
}

/* Where rdtsc leaves the cache, the runtime executes it, and reads the clock with it, too: the kernel is not asked. */
static long set_tsc(struct thread *t, const uint64_t a[6]) {
    if (!the_policy->intercept) return gate_syscall(__NR_prctl, a);
    if (a[1] != PR_TSC_ENABLE && a[1] != PR_TSC_SIGSEGV) return -EINVAL;
    t->tsc_faults = a[1] == PR_TSC_SIGSEGV;
    return 0;
}

static long get_tsc(const struct thread *t, const uint64_t a[6]) {
    if (!the_policy->intercept) return gate_syscall(__NR_prctl, a);
    int value = t->tsc_faults ? PR_TSC_SIGSEGV : PR_TSC_ENABLE;
    return guest_write(a[1], &value, sizeof value) ? 0 : -EFAULT;
}

long sys_prctl(struct tblock *t, uint64_t a[6]) {
    switch ((int)a[0]) {
    case PR_SET_SECCOMP: return set_seccomp(t, a);
    case PR_GET_SECCOMP: return t->thread->seccomp.mode;
    case PR_SET_MM: return set_mm(a);
    case PR_SET_NAME: return set_name(t->thread, a);
    case PR_GET_TID_ADDRESS: return get_tid_address(t->thread, a);
    case PR_SET_MDWE: return set_mdwe(a);
    case PR_GET_MDWE: return a[1] || a[2] || a[3] || a[4] ? -EINVAL : (long)the_runtime.mdwe;
    case PR_SET_TSC: return set_tsc(t->thread, a);
    case PR_GET_TSC: return get_tsc(t->thread, a);
    case PR_SET_SYSCALL_USER_DISPATCH: return -EINVAL; /* as kernels without it */
    default: return gate_syscall(__NR_prctl, a);
    }
}

long sys_seccomp(struct tblock *t, uint64_t a[6]) {
    uint32_t flags = (uint32_t)a[1];
    switch ((uint32_t)a[0]) {
    case SECCOMP_SET_MODE_STRICT: return flags || a[2] ? -EINVAL : seccomp_set_strict(t);
    case SECCOMP_SET_MODE_FILTER: return seccomp_add(t, flags, a[2]);
    case SECCOMP_GET_ACTION_AVAIL: return seccomp_action_avail(flags, a[2]);
    case SECCOMP_GET_NOTIF_SIZES: return gate_syscall(__NR_seccomp, a);
    default: return -EINVAL;
    }
}

long sys_arch_prctl(struct tblock *t, uint64_t a[6]) {
    switch (a[0]) {
    case ARCH_SET_GS:
        if (a[1] >= LAYOUT_GUEST_END) return -EPERM;
        t->guest_gs = a[1];
        t->guest_gs_selector = 0;
        return 0;
    case ARCH_GET_GS: return guest_write(a[1], &t->guest_gs, 8) ? 0 : -EFAULT;
    case ARCH_SET_CPUID: return a[1] ? 0 : -ENODEV; /* a faulting cpuid would hit the runtime */
    case ARCH_SHSTK_ENABLE: return -EOPNOTSUPP;
    case ARCH_REQ_XCOMP_PERM: {
        long ret = gate_syscall(__NR_arch_prctl, a);
        sigframe_ask_permission();
        return ret;
    }
    default: return gate_syscall(__NR_arch_prctl, a);
    }
}

/* The table belongs to the address space. gs stays as it was loaded, as without us. */
long sys_modify_ldt(struct tblock *t, uint64_t a[6]) {
    long ret = gate_syscall(__NR_modify_ldt, a);
    if (ret != 0 || segment_reads_ldt(a)) return ret;
    the_runtime.has_ldt = true;
    if (the_mode->kernel_signals) segment_tell_losers();
    return ret;
}

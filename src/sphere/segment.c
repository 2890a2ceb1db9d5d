#include "sphere/segment.h"

#include <asm/prctl.h>

#include "inproc/sys.h"
#include "sphere/runtime.h"
#include "sphere/signals.h"
#include "sphere/thread.h"

#define SIGSEGV_ 11

static bool is_readable(uint16_t selector) {
    bool yes;
    __asm__("verr %w1" : "=@ccz"(yes) : "r"((uint32_t)selector));
    return yes;
}

/* What base the selector gives is found out with fs, which the runtime does not use. */
static uint64_t base_of(uint64_t base, uint16_t selector) {
    uint64_t old_base = 0;
    uint32_t old_selector;
    SYS(arch_prctl, ARCH_GET_FS, &old_base);
    __asm__ volatile("mov %%fs, %0" : "=r"(old_selector));
    SYS(arch_prctl, ARCH_SET_FS, base); /* some processors keep it when the selector is null */
    __asm__ volatile("mov %0, %%fs" : : "r"((uint32_t)selector));
    SYS(arch_prctl, ARCH_GET_FS, &base);
    __asm__ volatile("mov %0, %%fs" : : "r"(old_selector));
    if (!(old_selector & ~3u)) SYS(arch_prctl, ARCH_SET_FS, old_base);
    return base;
}

bool segment_load_gs(struct tblock *t, uint16_t selector) {
    if ((selector & ~3u) && !is_readable(selector)) return false;
    t->guest_gs = base_of(t->guest_gs, selector);
    t->guest_gs_selector = selector;
    return true;
}

/* ---- ss ---- */

#define LAR_TYPE 0xf00u
#define LAR_WRITABLE_DATA 0x200u
#define LAR_S_DPL3 0x7000u
#define LAR_PRESENT 0x8000u

enum segment_state segment_is_stack(uint16_t selector) {
    uint32_t rights = 0;
    bool is_there;
    __asm__("lar %k2, %0" : "+r"(rights), "=@ccz"(is_there) : "r"((uint32_t)selector));
    if (!is_there || (selector & 3) != 3 || !(selector & ~3u)) return SEGMENT_BAD;
    if ((rights & (LAR_S_DPL3 | (LAR_TYPE & 0xa00u))) != (LAR_S_DPL3 | LAR_WRITABLE_DATA)) return SEGMENT_BAD;
    return rights & LAR_PRESENT ? SEGMENT_GOOD : SEGMENT_NOT_PRESENT;
}

/* First it is there to be seen, then looked at: who changes the LDT does it the other way round. */
enum segment_state segment_load_ss(struct tblock *t, uint16_t selector) {
    uint16_t old = t->own_ss;
    __atomic_store_n(&t->own_ss, selector == GUEST_SS ? 0 : selector, __ATOMIC_SEQ_CST);
    enum segment_state s = segment_is_stack(selector);
    if (s != SEGMENT_GOOD) t->own_ss = old;
    return s;
}

#define LOSS_CODE (-0x5251) /* none that the kernel or libc use */

static bool has_lost(const struct thread *t) {
    uint16_t ss = __atomic_load_n(&t->tb->own_ss, __ATOMIC_SEQ_CST);
    return ss && segment_is_stack(ss) != SEGMENT_GOOD;
}

void segment_tell_losers(void) {
    struct siginfo_raw info = {.signo = SIGSEGV_, .code = LOSS_CODE};
    for (struct thread *t = threads_first(); t; t = t->next)
        if (__atomic_load_n(&t->in_use, __ATOMIC_ACQUIRE) && has_lost(t))
            SYS(rt_tgsigqueueinfo, t->tgid, t->tid, SIGSEGV_, &info);
}

bool segment_is_loss(struct siginfo_raw *info) {
    if (likely(info->code != LOSS_CODE || info->signo != SIGSEGV_)) return false;
    *info = (struct siginfo_raw){.signo = SIGSEGV_, .code = SI_KERNEL_};
    return true;
}

/* ---- the others ---- */

struct selectors segment_selectors(void) {
    struct selectors s;
    __asm__ volatile("mov %%ds, %0; mov %%es, %1; mov %%fs, %2" : "=m"(s.ds), "=m"(s.es), "=m"(s.fs));
    return s;
}

/* One that is no more becomes null, as when the kernel goes back to a thread. */
static uint16_t usable(uint16_t selector) { return is_readable(selector) ? selector : 0; }

void segment_set_selectors(const struct selectors *s, uint64_t fs_base) {
    uint64_t base;
    SYS(arch_prctl, ARCH_SET_FS, fs_base);
    struct selectors now = segment_selectors();
    if (now.ds != s->ds) __asm__ volatile("mov %0, %%ds" : : "r"((uint32_t)usable(s->ds)));
    if (now.es != s->es) __asm__ volatile("mov %0, %%es" : : "r"((uint32_t)usable(s->es)));
    if (likely(!(s->fs & ~3u))) return;
    __asm__ volatile("mov %0, %%fs" : : "r"((uint32_t)usable(s->fs)));
    SYS(arch_prctl, ARCH_GET_FS, &base);
    if (base != fs_base && the_runtime.has_fsgsbase) __asm__ volatile("wrfsbase %0" : : "r"(fs_base));
}

bool segment_has_wide_pointers(void) {
    uint32_t a = 0, b, c = 0, d;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return b == 0x756e6547; /* "Genu" */
}

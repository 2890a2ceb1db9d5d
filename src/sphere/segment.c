#include "sphere/segment.h"

#include <asm/prctl.h>

#include "inproc/sys.h"
#include "sphere/runtime.h"

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

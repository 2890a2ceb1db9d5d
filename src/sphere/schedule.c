#include "sphere/schedule.h"

#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/runtime.h"
#include "sphere/segment.h"
#include "sphere/sigframe.h"

#define ARCH_SET_GS 0x1001
#define ARCH_GET_FS 0x1003

struct scheduled {
    uint64_t sp; /* of its suspended code */
    uint64_t fs_base;
    struct selectors selectors;
    uint8_t *extended; /* vector and x87 registers */
    struct scheduled *next_free;
};

/* schedule_switch.S */
void schedule_swap(uint64_t *save_sp, uint64_t load_sp);

static struct scheduled *free_list;
static struct thread *leaving; /* has ended, but its stack was still in use */

static struct scheduled *scheduled_new(void) {
    struct scheduled *s = free_list;
    if (s) {
        free_list = s->next_free;
        return s;
    }
    s = arena_alloc(sizeof *s);
    s->extended = arena_pages(sigframe_extended_size());
    return s;
}

uint64_t schedule_fs_base(void) {
    uint64_t base = 0;
    if (the_runtime.has_fsgsbase)
        __asm__ volatile("rdfsbase %0" : "=r"(base));
    else
        SYS(arch_prctl, ARCH_GET_FS, &base);
    return base;
}

const uint8_t *schedule_extended_of(const struct thread *t, uint64_t *fs_base) {
    *fs_base = t->scheduled->fs_base;
    return t->scheduled->extended;
}

void schedule_set_registers(struct thread *t, const uint8_t *extended, uint64_t fs_base) {
    t->scheduled->fs_base = fs_base;
    memcpy(t->scheduled->extended, extended, sigframe_extended_size());
}

void schedule_park(struct thread *t, uint64_t fs_base, bool extended) {
    if (!t->scheduled) t->scheduled = scheduled_new();
    t->scheduled->fs_base = fs_base;
    if (extended) sigframe_save_extended(t->scheduled->extended);
}

void schedule_forget(struct thread *t) {
    if (!t->scheduled) return;
    t->scheduled->next_free = free_list;
    free_list = t->scheduled;
    t->scheduled = NULL;
}

void schedule_start(struct thread *t) { t->scheduled = scheduled_new(); }

void schedule_add(struct thread *t, void (*entry)(void), uint64_t fs_base) {
    t->scheduled = scheduled_new();
    t->scheduled->fs_base = fs_base;
    t->scheduled->selectors = segment_selectors();
    if (fs_base != schedule_fs_base()) t->scheduled->selectors.fs = 0; /* CLONE_SETTLS */
    sigframe_save_extended(t->scheduled->extended);
    uint64_t *sp = (uint64_t *)(t->tb->rt_sp & ~15ul);
    *--sp = 0; /* the entry finds the stack as after a call */
    *--sp = (uint64_t)entry;
    sp -= 6;
    memset(sp, 0, 48);
    t->scheduled->sp = (uint64_t)sp;
}

static void bury(void) {
    if (!leaving) return;
    leaving->scheduled->next_free = free_list;
    free_list = leaving->scheduled;
    leaving->scheduled = NULL;
    leaving->in_use = false;
    leaving = NULL;
}

void schedule_switch(struct thread *to) {
    struct thread *from = thread_self();
    from->scheduled->fs_base = schedule_fs_base();
    from->scheduled->selectors = segment_selectors();
    sigframe_save_extended(from->scheduled->extended);
    SYS(arch_prctl, ARCH_SET_GS, to->tb);
    segment_set_selectors(&to->scheduled->selectors, to->scheduled->fs_base);
    sigframe_load_extended(to->scheduled->extended);
    schedule_swap(&from->scheduled->sp, to->scheduled->sp);
    bury();
}

void schedule_leave(struct thread *to) {
    struct thread *from = thread_self();
    bury();
    leaving = from;
    schedule_switch(to);
    die("an R-thread that had ended went on");
}

/* The stack of the first thread: it is mapped in full, and what is below it is natively no mapping. */
#include <linux/mman.h>

#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "inproc/layout.h"
#include "inproc/lock.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace_parts.h"
#include "sphere/mode.h"
#include "sphere/thread.h"

bool aspace_is_stack(const struct mapping *m) { return strcmp(m->name, "[stack]") == 0; }

#define STACK_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK)

/* Not what the program has put there to stop the stack. */
bool aspace_is_guard(const struct mapping *m) {
    return m->prot == PROT_NONE && !m->name[0] && !m->file.ino && (m->flags & STACK_FLAGS) == STACK_FLAGS;
}

bool aspace_is_stack_guard(size_t i) {
    const struct mapping *m = &as->list[i];
    return aspace_is_guard(m) && i + 1 < as->n && m[1].start == m->end && aspace_is_stack(&m[1]);
}

/* The kernel does not know that the stack grows: PROT_GROWSDOWN means from its beginning on. */
bool aspace_is_in_stack(gaddr addr, gaddr *start) {
    size_t i = aspace_first_above(addr);
    if (i == as->n || as->list[i].start > addr || !aspace_is_stack(&as->list[i])) return false;
    *start = as->list[i].start;
    return true;
}

#define STACK_GUARD (1ul << 20) /* the kernel's stack_guard_gap */

/* Its lowest mapping; as->n: there is none. */
static size_t find_stack(void) {
    size_t i = as->stack_top ? aspace_first_above(as->stack_top - 1) : as->n;
    if (i == as->n || !aspace_is_stack(&as->list[i])) return as->n;
    while (i > 0 && aspace_is_stack(&as->list[i - 1]) && as->list[i - 1].end == as->list[i].start) i--;
    return i;
}

static gaddr stack_guard(size_t i) {
    gaddr start = as->list[i].start;
    return i > 0 && aspace_is_stack_guard(i - 1) ? MAX(as->list[i - 1].start, start - STACK_GUARD) : start;
}

/* Natively the stack is what was used of it. */
static gaddr stack_used(const struct mapping *stack) {
    uint8_t there[256];
    gaddr end = as->stack_top - STACK_AT_FIRST;
    if (stack->end != as->stack_top || stack->start > end) return stack->start;
    for (gaddr at = stack->start; at < end; at += sizeof there * PAGE_SIZE) {
        uint64_t n = MIN(end - at, sizeof there * PAGE_SIZE) / PAGE_SIZE;
        if (SYS(mincore, at, n * PAGE_SIZE, there) != 0) return stack->start;
        for (uint64_t k = 0; k < n; k++)
            if (there[k] & 1) return at + k * PAGE_SIZE;
    }
    return end;
}

/* What comes in is new, what goes was not used. The guard, which is below it, moves along; it does not go below floor. */
static void move_stack(size_t i, gaddr start, gaddr floor) {
    struct mapping stack = as->list[i];
    gaddr old_guard = stack_guard(i), guard = MAX(start - STACK_GUARD, floor), old = stack.start;
    int flags = STACK_FLAGS;
    if (start < old &&
        sys_failed(SYS(mmap, start, old - start, aspace_host_prot((int)stack.prot), flags | MAP_FIXED, -1, 0)))
        return;
    if (old_guard < guard) SYS(munmap, old_guard, guard - old_guard);
    if (guard < start) SYS(mmap, guard, start - guard, PROT_NONE, flags | MAP_FIXED, -1, 0);
    aspace_list_carve(old_guard, MIN(stack.end, MAX(start, old)));
    aspace_list_carve(guard, start);
    stack.start = start;
    aspace_list_add(&stack);
    struct mapping m = {.start = guard, .end = start, .flags = (uint32_t)flags, .was_writable = true};
    if (guard < start) aspace_list_add(&m);
    aspace_freed(old_guard, guard);
    track_changed(MIN(old_guard, guard), MAX(start, old));
    thread_self()->stack_start = start;
}

/* Where the mapping below ends; the guard may have become one with it. gap: between it and the stack, unless NULL. */
static gaddr stack_floor(size_t i, uint64_t *gap) {
    gaddr guard = stack_guard(i);
    size_t below = aspace_first_above(guard - 1);
    if (below > 0 && as->list[below].start >= guard) below--;
    if (gap) *gap = as->list[below].start < guard && as->list[below].prot == PROT_NONE ? 0 : STACK_GUARD;
    return as->list[below].start < guard ? MIN(as->list[below].end, guard) : LAYOUT_MMAP_BASE;
}

/* The stack gets what its limit allows, and what is mapped below, or will be up to `floor`: there remains a gap, except to memory
 * that nobody can touch. */
static void fit_stack(uint64_t limit, gaddr floor, uint64_t gap, bool may_shrink) {
    size_t i = find_stack();
    if (i == as->n) return;
    gaddr start = as->list[i].start;
    uint64_t gap_below;
    gaddr below = stack_floor(i, &gap_below), lowest = MAX(floor + gap, below + gap_below);
    floor = MAX(floor, below);
    uint64_t most = MAX(STACK_ROOM - STACK_GUARD, as->stack_top - start); /* "unlimited" had its share at first */
    gaddr want = MAX(as->stack_top - PAGE_DOWN(MIN(limit, most)), lowest);
    want = MIN(want, may_shrink ? stack_used(&as->list[i]) : start);
    if (want != start) move_stack(i, want, floor);
}

static uint64_t stack_limit(void) {
    uint64_t limit[2] = {UINT64_MAX, 0};
    SYS(prlimit64, 0, 3 /* RLIMIT_STACK */, 0, limit);
    return limit[0];
}

/* The program maps memory where only the stack could be. */
void aspace_stack_makes_way(gaddr start, gaddr end, int prot) {
    size_t i = find_stack();
    if (!the_mode->kernel_signals || i == as->n || start >= as->stack_top || end <= stack_guard(i)) return;
    if (end <= stack_used(&as->list[i])) fit_stack(stack_limit(), end, prot == PROT_NONE ? 0 : STACK_GUARD, true);
}

/* It has freed such memory. */
void aspace_stack_takes_room(gaddr start, gaddr end) {
    if (the_mode->kernel_signals && as->stack_top && start < as->stack_top && end > as->stack_top - STACK_ROOM)
        fit_stack(stack_limit(), 0, 0, true);
}

void aspace_limit_stack(uint64_t size, bool may_shrink) {
    lock_take(&cache_lock);
    fit_stack(size, 0, 0, may_shrink);
    lock_drop(&cache_lock);
}

void aspace_put_stack(gaddr start, bool smaller, gaddr floor) {
    lock_take(&cache_lock);
    size_t i = find_stack();
    bool is_smaller = i < as->n && start > as->list[i].start && start < as->list[i].end;
    bool is_larger = i < as->n && start < as->list[i].start && start >= stack_floor(i, NULL);
    if (start % PAGE_SIZE == 0 && (smaller ? is_smaller : is_larger))
        move_stack(i, start, MAX(floor <= start ? floor : 0, stack_floor(i, NULL)));
    lock_drop(&cache_lock);
}

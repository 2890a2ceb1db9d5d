#include "sphere/debug_state.h"

#include <linux/fcntl.h>
#include <linux/mman.h>

#include "engine/cache.h"
#include "engine/flags.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/channel.h"
#include "sphere/code_watch.h"
#include "sphere/contents.h"
#include "sphere/gate.h"
#include "sphere/memory_hash.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/sigframe.h"
#include "sphere/signals.h"

#define ARCH_SET_FS 0x1002
#define USER_FLAGS 0x244cd5ull
#define FIXED_FLAGS 0x202ull
#define PAGE_THERE (3ull << 62) /* of a word of /proc/self/pagemap: in memory, or swapped out */

struct thread *state_thread(uint32_t number) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use && t->scheduled && t->number == number) return t;
    return NULL;
}

uint64_t state_flags(const struct thread *t) {
    const struct tblock *tb = t->tb;
    return flags_as_shown(tb->pc, tb->rflags) | (tb->trap_flag ? RFLAGS_TF : 0);
}

/* The one that runs has left its call when it has taken the events of that. */
static bool is_in_call(const struct thread *who, const struct thread *t) {
    return who->debugged.in_call && (who != t || stream_taken() == who->debugged.op_event);
}

uint64_t state_registers(struct thread *t, uint32_t number, struct worker_registers *out, size_t cap) {
    struct thread *who = state_thread(number);
    size_t size = sigframe_extended_size();
    if (!who || sizeof *out + size > cap) return 0;
    const struct tblock *tb = who->tb;
    memcpy(out->gpr, tb->gpr, sizeof out->gpr);
    out->pc = tb->pc;
    out->rflags = state_flags(who);
    out->gs_base = tb->guest_gs;
    out->gs = tb->guest_gs_selector;
    out->in_call = is_in_call(who, t);
    out->orig_rax = out->in_call ? tb->gpr[RAX] : UINT64_MAX;
    out->xcr0 = sigframe_extended_mask();
    out->xsave_size = (uint32_t)size;
    uint8_t *xsave = out->xsave + (-(uintptr_t)out->xsave & 63); /* xsave wants it aligned; there is room behind */
    if (who == t) {
        out->fs_base = schedule_fs_base();
        memset(xsave, 0, size);
        sigframe_save_extended(xsave);
        memmove(out->xsave, xsave, size);
    } else {
        memcpy(out->xsave, schedule_extended_of(who, &out->fs_base), size);
    }
    return sizeof *out + size;
}

#define SWAP(a, b)              \
    do {                        \
        __typeof__(a) swap = a; \
        a = b;                  \
        b = swap;               \
    } while (0)

/* In a diversion: t goes on as the R-thread `who`, which is in the middle of something that the log would have ended. Its
 * vector registers are still to be set. */
static void change_places(struct thread *t, struct thread *who) {
    for (size_t i = 0; i < ARRAY_LEN(t->tb->gpr); i++) SWAP(t->tb->gpr[i], who->tb->gpr[i]);
    SWAP(t->tb->pc, who->tb->pc);
    SWAP(t->tb->rflags, who->tb->rflags);
    SWAP(t->tb->guest_gs, who->tb->guest_gs);
    SWAP(t->tb->guest_gs_selector, who->tb->guest_gs_selector);
    SWAP(t->number, who->number);
    SWAP(t->tid, who->tid);
    SWAP(t->sigmask, who->sigmask);
    SWAP(t->altstack, who->altstack);
    SWAP(t->reads_imply_exec, who->reads_imply_exec);
    SWAP(t->clear_tid, who->clear_tid);
    SWAP(t->robust_head, who->robust_head);
    SWAP(t->debugged, who->debugged);
    static uint8_t extended[16384] __attribute__((aligned(64)));
    sigframe_save_extended(extended);
    schedule_set_registers(who, extended, schedule_fs_base());
}

uint64_t state_set_registers(struct thread *t, uint32_t number, const struct worker_registers *in) {
    static uint8_t area[16384] __attribute__((aligned(64)));
    struct thread *who = state_thread(number);
    if (!who || sigframe_extended_size() > sizeof area) return 0;
    if (who != t) change_places(t, who);
    struct tblock *tb = t->tb;
    memcpy(tb->gpr, in->gpr, sizeof tb->gpr);
    tb->pc = in->pc;
    tb->rflags = (in->rflags & USER_FLAGS) | FIXED_FLAGS;
    tb->guest_gs = in->gs_base;
    SYS(arch_prctl, ARCH_SET_FS, in->fs_base);
    size_t size = sigframe_extended_size();
    if (in->xsave_size == size) {
        sigframe_save_extended(area);
        memcpy(area, in->xsave, 464); /* x87 and SSE as they are, but for what the kernel says behind them */
        memcpy(area + 576, in->xsave + 576, size > 576 ? size - 576 : 0);
        sigframe_load_extended(area);
    }
    return 1;
}

/* How many of n bytes from `at` on are the program's. */
static size_t guest_bytes(gaddr at, size_t n, struct mapping *m) {
    if (at + n < at || !aspace_find(at, m) || m->runtime) return 0;
    size_t k = MIN(m->end - at, n);
    return aspace_is_runtime(at, k) ? 0 : k;
}

uint64_t state_read(gaddr from, void *to, size_t n) {
    size_t done = 0;
    while (done < n) {
        struct mapping m;
        size_t k = MIN(guest_bytes(from + done, n - done, &m), PAGE_SIZE - ((from + done) & (PAGE_SIZE - 1)));
        if (!k) break;
        gaddr at = from + done;
        bool opened = !(m.prot & (PROT_READ | PROT_EXEC));
        if (opened) SYS(mprotect, PAGE_DOWN(at), PAGE_SIZE, PROT_READ);
        bool good = shared_peek((uint8_t *)to + done, at, k);
        if (opened) SYS(mprotect, PAGE_DOWN(at), PAGE_SIZE, aspace_host_prot((int)m.prot));
        if (!good) break;
        done += k;
    }
    return done;
}

uint64_t state_write(gaddr to, const void *from, size_t n) {
    size_t done = 0;
    while (done < n) {
        struct mapping m;
        size_t k = MIN(guest_bytes(to + done, n - done, &m), PAGE_SIZE - ((to + done) & (PAGE_SIZE - 1)));
        if (!k) break;
        gaddr at = to + done;
        code_watch_before_kernel_write(at, k);
        bool opened = !(m.prot & PROT_WRITE);
        if (opened) SYS(mprotect, PAGE_DOWN(at), PAGE_SIZE, PROT_READ | PROT_WRITE);
        bool good = guest_write(at, (const uint8_t *)from + done, k);
        if (opened) SYS(mprotect, PAGE_DOWN(at), PAGE_SIZE, aspace_host_prot((int)m.prot));
        if (m.prot & PROT_EXEC) {
            lock_take(&cache_lock);
            cache_invalidate_range(at, at + k);
            lock_drop(&cache_lock);
        }
        if (!good) break;
        done += k;
    }
    return done;
}

uint64_t state_threads(struct thread *t, struct worker_thread *out, size_t cap) {
    size_t n = 0;
    for (struct thread *who = threads_first(); who && (n + 1) * sizeof *out <= cap; who = who->next) {
        if (!who->in_use || !who->scheduled || who->awaits == AWAITS_NOTHING) continue; /* ended */
        out[n] = (struct worker_thread){.number = who->number,
                                        .tid = who->tid,
                                        .in_call = is_in_call(who, t),
                                        .is_current = who == t,
                                        .has_op = who->debugged.has_op,
                                        .op_event = who->debugged.op_event,
                                        .op_ticks = who->debugged.op_ticks,
                                        .call = who->tb->gpr[RAX]};
        memcpy(out[n].name, who->debugged.name, sizeof out[n].name);
        gate_args(who->tb, out[n++].args);
    }
    return n;
}

uint64_t state_regions(size_t first, struct worker_region *out, size_t cap) {
    size_t n = 0, skip = first;
    struct mapping m;
    for (size_t i = 0; (n + 1) * sizeof *out <= cap && aspace_nth(i, &m); i++) {
        if (m.runtime) continue;
        if (skip) {
            skip--;
            continue;
        }
        out[n] = (struct worker_region){m.start, m.end, m.offset, m.file.dev, m.file.ino, m.prot, m.flags, {0}};
        memcpy(out[n++].name, m.name, sizeof m.name);
    }
    return n;
}

uint64_t state_hash(void) {
    struct ev_hash h;
    memory_hash_alone(&h);
    return (h.hash + contents_hash()) ^ h.bytes * 0x9e3779b97f4a7c15ull;
}

/* Where anonymous memory has its first page from *page on, and how many of that mapping; 0: nowhere. */
static uint64_t find_anonymous(uint64_t object, uint64_t *page, gaddr *addr) {
    struct mapping m;
    uint64_t best = UINT64_MAX, n = 0;
    for (size_t i = 0; aspace_nth(i, &m); i++) {
        uint64_t first = m.offset / PAGE_SIZE, end = first + (m.end - m.start) / PAGE_SIZE, at = MAX(first, *page);
        if (m.runtime || m.object != object || at >= end || at >= best) continue;
        best = at;
        n = end - at;
        *addr = m.start + (at - first) * PAGE_SIZE;
    }
    *page = best;
    return n;
}

static bool next_anonymous(uint64_t object, uint64_t *page, uint8_t *to) {
    long pagemap = SYS(openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    gaddr addr;
    bool found = false;
    for (uint64_t n; !found && (n = find_anonymous(object, page, &addr));)
        for (; !found && n; n--, addr += PAGE_SIZE, ++*page) {
            uint64_t word = UINT64_MAX;
            if (pagemap >= 0) SYS(pread64, pagemap, &word, 8, addr / PAGE_SIZE * 8);
            found = (word & PAGE_THERE) && state_read(addr, to, PAGE_SIZE) == PAGE_SIZE && !memory_is_zero(to);
            if (found) break;
        }
    if (pagemap >= 0) SYS(close, pagemap);
    return found;
}

uint64_t state_shared(uint64_t object, uint64_t page, struct worker_shared *out, size_t cap) {
    uint64_t n = 0;
    for (; (n + 1) * sizeof *out <= cap; n++) {
        bool found = shared_is_file(object) ? contents_next(object, &page, out[n].bytes)
                                            : next_anonymous(object, &page, out[n].bytes);
        if (!found) break;
        out[n].page = page++;
    }
    return n;
}

bool state_is_elsewhere(gaddr addr) {
    const struct mapping *m = aspace_peek(addr);
    return m && !m->borrowed && shared_is_closed(addr);
}

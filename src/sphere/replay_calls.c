#include "sphere/replay_parts.h"

#include <linux/mman.h>

#include "ckpt/rt/track.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/snapshot.h"
#include "sphere/aio.h"
#include "sphere/aspace.h"
#include "sphere/borrowed.h"
#include "sphere/code_watch.h"
#include "sphere/contents.h"
#include "sphere/debug.h"
#include "sphere/file_changes.h"
#include "sphere/forced_write.h"
#include "sphere/legacy.h"
#include "sphere/objects.h"
#include "sphere/outputs.h"
#include "sphere/shared.h"
#include "sphere/signals.h"
#include "sphere/sys/model.h"
#include "sphere/sys/special.h"
#include "sphere/thread_end.h"

void replay_put(struct thread *t, const struct event *e) {
    const struct ev_memory *m = (const struct ev_memory *)(e + 1);
    if (!m->len) return;
    if (m->addr + m->len < m->addr || aspace_is_runtime(m->addr, m->len))
        replay_diverged(t, e, "output outside of the program", m->addr, m->len);
    if (!forced_fill(m->addr, m + 1, m->len))
        replay_diverged(t, e, "output to memory that is not there", m->addr, m->len);
}

void replay_take_outs(struct thread *t, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const struct event *e = stream_peek();
        if (!e) replay_cut_off();
        if (e->kind != EV_OUT) replay_diverged(t, e, "output", EV_OUT, e->kind);
        replay_put(t, e);
        stream_take();
    }
}

static struct file_id file_of(const struct ev_mapped *m) {
    return (struct file_id){m->dev, m->ino, m->size, m->mtime_ns, m->ctime_ns, MAPPED_BIRTH(m->flags)};
}

static bool is_unnamed(const struct object_name *n) { return !n->lo && !n->hi; }

/* What a System V segment held before, or a file's last page behind its end. */
void replay_take_memory(struct thread *t) {
    for (const struct event *e; (e = stream_peek()) && e->kind == EV_MEMORY; stream_take()) replay_put(t, e);
}

static void map_anonymous_again(struct thread *t, struct mapping *m, uint64_t object) {
    struct mapping first;
    m->object = object;
    if (!aspace_find_page(object, m->offset, &first))
        replay_diverged(t, NULL, "memory to be mapped again", object, m->offset);
    m->tracked = first.tracked;
    long ret;
    if (unlikely(debug_is_on)) {
        struct file_source from = contents_of_anonymous(object);
        ret = aspace_restore(m, from.fd, from.base);
    } else {
        ret = aspace_restore_again(m);
    }
    if (ret) replay_diverged(t, NULL, "mapping fails", 0, (uint64_t)-ret);
}

/* What was mapped comes from the log; where it was mapped, too. */
static void map_again(struct thread *t, struct mapping *m, bool is_file) {
    struct file_source from = {.fd = -1};
    bool shared = (m->flags & MAP_TYPE) != MAP_PRIVATE;
    bool is_shown = false;
    uint64_t owned = 0; /* pages */
    if (is_file) {
        const struct event *e = stream_peek();
        if (!e) replay_cut_off();
        if (e->kind != EV_MAPPED) replay_diverged(t, e, "mapped file", EV_MAPPED, e->kind);
        struct ev_mapped v = *(const struct ev_mapped *)(e + 1);
        stream_take();
        if (v.flags & MAPPED_UNSURE) m->was_writable = true;
        if (!m->end) m->end = m->start + PAGE_UP(v.size); /* shmat */
        if (v.flags & MAPPED_ANONYMOUS) {
            m->flags |= MAP_ANONYMOUS;
            if (v.flags & MAPPED_PRIVATE) m->flags = (m->flags & ~(uint32_t)MAP_TYPE) | MAP_PRIVATE;
            if (v.flags & MAPPED_AGAIN) return map_anonymous_again(t, m, v.ino);
        } else {
            m->file = file_of(&v);
            is_shown = v.flags & (MAPPED_TRACKED | MAPPED_BORROWED);
            m->tracked = shared && (v.flags & MAPPED_TRACKED);
            if (m->tracked) m->object = shared_file(&m->file);
            from = file_changes_source(&v);
        }
        owned = v.flags & MAPPED_OWNED ? PAGE_UP(v.size) / PAGE_SIZE : 0;
    }
    bool is_kept =
        is_file && !m->tracked && !(m->flags & MAP_ANONYMOUS); /* from the store, which nobody may write to */
    if (debug_is_on && shared && is_kept) m->flags = (m->flags & ~(uint32_t)MAP_TYPE) | MAP_PRIVATE;
    long ret = aspace_restore(m, from.fd, from.base);
    if (ret) replay_diverged(t, NULL, "mapping fails", 0, (uint64_t)-ret);
    if (owned) shared_own(shared_file(&m->file), owned);
    if (is_shown && m->tracked) borrowed_show_shared(m->object);
    if (is_shown && !m->tracked) borrowed_show_new(m);
    if (owned) replay_take_memory(t);
}

/* Private pages of files are the process's own from then on: what is written to the file later does not show in them. */
static void populate_files(gaddr start, uint64_t len) {
    const struct mapping *m;
    gaddr end = start + PAGE_UP(len);
    for (gaddr at = start; at < end && (m = aspace_next(at)) && m->start < end; at = m->end) {
        gaddr from = MAX(at, m->start);
        if (m->file.ino && (m->flags & MAP_TYPE) == MAP_PRIVATE)
            SYS(madvise, from, MIN(m->end, end) - from, MADV_POPULATE_WRITE);
    }
}

static uint64_t locks_future; /* what this process, by its number, maps from now on is populated */

/* mlockall() and munlockall() set anew what becomes of later mappings. */
static void lock_all_again(int flags) {
    bool populates = !(flags & MCL_ONFAULT);
    locks_future = populates && (flags & MCL_FUTURE) ? the_stream.number + 1 : 0;
    if (populates && (flags & MCL_CURRENT)) populate_files(0, LAYOUT_GUEST_END);
}

static void mmap_again(struct thread *t, const uint64_t a[6], long ret) {
    struct mapping m = {.start = (gaddr)ret,
                        .end = (gaddr)ret + aspace_mmap_size(a[1], (int)a[3]),
                        .prot = (uint32_t)thread_prot(t, a[2]),
                        .flags = (uint32_t)a[3] & ~(uint32_t)MAP_FIXED_NOREPLACE,
                        .offset = a[3] & MAP_ANONYMOUS ? 0 : a[5],
                        .was_writable = a[2] & PROT_WRITE};
    map_again(t, &m, !(a[3] & MAP_ANONYMOUS));
    bool populates = (a[3] & (MAP_POPULATE | MAP_LOCKED)) || unlikely(locks_future == the_stream.number + 1);
    if (populates && !(a[3] & MAP_ANONYMOUS)) populate_files((gaddr)ret, a[1]);
}

static void shmat_again(struct thread *t, const uint64_t a[6], long ret) {
    struct mapping m = {.start = (gaddr)ret, .flags = MAP_SHARED};
    m.prot = PROT_READ | (a[2] & 010000 ? 0 : PROT_WRITE) | (a[2] & 0100000 ? PROT_EXEC : 0);
    fmt_into(m.name, sizeof m.name, "/SYSV");
    map_again(t, &m, true);
}

static long mremap_again(const uint64_t a[6], long ret) {
    struct mapping m;
    if (unlikely(debug_is_on) && !a[1] && aspace_find(a[0], &m) && m.object && !shared_is_file(m.object))
        contents_of_anonymous(m.object);
    if ((gaddr)ret == a[0]) return aspace_mremap(a[0], a[1], a[2], (int)a[3] & ~(MREMAP_MAYMOVE | MREMAP_FIXED), 0);
    return aspace_mremap(a[0], a[1], a[2], (int)a[3] | MREMAP_MAYMOVE | MREMAP_FIXED, (gaddr)ret);
}

/* Where is the first thing that it wrote. */
static void setup_again(struct thread *t, const uint64_t a[6]) {
    const struct event *e = stream_peek();
    if (!e) replay_cut_off();
    const struct ev_memory *m = (const struct ev_memory *)(e + 1);
    if (e->kind != EV_OUT || m->len != 8) replay_diverged(t, e, "output", EV_OUT, e->kind);
    gaddr ctx;
    memcpy(&ctx, m + 1, sizeof ctx);
    replay_check_result(t, __NR_io_setup, 0, aio_map_again(a, ctx));
}

/* Advice that is more than a hint; hints may be unknown to another kernel. */
static bool changes_memory(int advice) {
    return advice == MADV_DONTNEED || (advice >= MADV_REMOVE && advice <= MADV_DOFORK) || advice == MADV_WIPEONFORK ||
           advice == MADV_KEEPONFORK || advice == ADVICE_DONTNEED_LOCKED || advice == ADVICE_GUARD_INSTALL ||
           advice == ADVICE_GUARD_REMOVE;
}

/* Ranges with holes: what comes before is changed all the same. */
static bool has_partial_effect(uint64_t nr, long ret) {
    return ret == -ENOMEM && (nr == __NR_madvise || nr == __NR_mprotect || nr == __NR_pkey_mprotect);
}

/* So it is if part of the range is a file that was not open for writing; its copy is. */
static void protect_up_to_file(gaddr start, uint64_t len, int prot) {
    struct mapping m;
    gaddr end = start + PAGE_UP(len);
    for (gaddr at = start; at < end && aspace_find(at, &m); at = m.end) {
        bool is_file = (m.flags & MAP_TYPE) != MAP_PRIVATE && m.file.ino;
        if (is_file && (prot & PROT_WRITE)) return;
        aspace_mprotect(at, MIN(m.end, end) - at, prot);
    }
}

/* A worker has shared memory for itself (aspace_restore), privately: advice that takes nothing from memory that is shared would clear it,
 * and what clears it would be refused. */
static long advise_private(struct tblock *tb, const struct mapping *m, uint64_t b[6]) {
    if ((m->flags & MAP_TYPE) == MAP_PRIVATE || m->file.ino || contents_has(m->object)) return sys_madvise(tb, b);
    if (b[2] == MADV_DONTNEED || b[2] == ADVICE_DONTNEED_LOCKED) return 0;
    if (b[2] == MADV_REMOVE) b[2] = MADV_DONTNEED;
    return sys_madvise(tb, b);
}

static long advise_again(struct tblock *tb, uint64_t a[6]) {
    if (likely(!debug_is_on)) return sys_madvise(tb, a);
    gaddr end = a[0] + PAGE_UP(a[1]), covered = 0;
    long ret = 0;
    const struct mapping *next;
    for (gaddr at = a[0]; !ret && at < end && (next = aspace_next(at)) && next->start < end;) {
        struct mapping m = *next; /* it may be split on the way */
        gaddr lo = MAX(m.start, at), hi = MIN(m.end, end);
        at = hi;
        covered += hi - lo;
        ret = advise_private(tb, &m, (uint64_t[6]){lo, hi - lo, a[2]});
    }
    return !ret && covered != end - a[0] ? -ENOMEM : ret;
}

static void do_again(struct tblock *tb, uint64_t nr, uint64_t a[6], long ret) {
    struct thread *t = tb->thread;
    if (unlikely(code_watch_protected || track_closes)) model_before_kernel_write(nr, a);
    bool is_kept_by_us = nr == __NR_set_tid_address || nr == __NR_set_robust_list || nr == __NR_personality;
    if (nr == __NR_mprotect && ret == -EACCES) protect_up_to_file(a[0], a[1], thread_prot(t, a[2]));
    if (sys_failed(ret) && !has_partial_effect(nr, ret)) return;
    uint64_t stack = limits_new_stack(t->process, nr, a);
    if (stack) aspace_limit_stack(stack, false); /* what else becomes of it is in the log */
    if (nr == __NR_mlock || (nr == __NR_mlock2 && !a[2])) populate_files(PAGE_DOWN(a[0]), a[0] % PAGE_SIZE + a[1]);
    if (nr == __NR_mlockall || nr == __NR_munlockall) lock_all_again(nr == __NR_mlockall ? (int)a[0] : 0);
    if (model_does(nr, a) == DOES_EMULATE && !is_kept_by_us) return;
    switch (nr) {
    case __NR_mmap: mmap_again(t, a, ret); break;
    case __NR_shmat: shmat_again(t, a, ret); break;
    case __NR_mremap: replay_check_result(t, nr, ret, mremap_again(a, ret)); break;
    case __NR_brk:
        if (a[0] == 0 || (gaddr)ret == a[0]) replay_check_result(t, nr, ret, sys_brk(tb, a));
        break;
    case __NR_io_setup: setup_again(t, a); break;
    case __NR_io_destroy: replay_check_result(t, nr, ret, aio_destroy(a)); break;
    case __NR_set_tid_address: thread_set_tid_address(t, a[0]); break;
    case __NR_set_robust_list: thread_set_robust_list(t, a[0], a[1]); break;
    case __NR_personality: thread_set_personality(t, a[0]); break;
    case __NR_madvise:
        if (a[2] == MADV_FREE) a[2] = MADV_DONTNEED;
        if (a[2] == MADV_POPULATE_WRITE) populate_files(a[0], a[1]);
        if (changes_memory((int)a[2])) replay_check_result(t, nr, ret, advise_again(tb, a));
        break;
    case __NR_modify_ldt: /* errors have 32 bits there */
        if (ret == 0) replay_check_result(t, nr, ret, sys_modify_ldt(tb, a));
        break;
    case __NR_mprotect:
    case __NR_pkey_mprotect:
    case __NR_munmap:
    case __NR_shmdt:
    case __NR_rt_sigaction:
    case __NR_rt_sigprocmask:
    case __NR_sigaltstack:
    case __NR_prctl:
    case __NR_arch_prctl: replay_check_result(t, nr, ret, model_special[nr](tb, a)); break;
    case __NR_seccomp: {
        long now = sys_seccomp(tb, a);
        replay_check_result(t, nr, ret, now == 0 && seccomp_makes_listener(a) ? ret : now);
    }
    }
}

static struct mapping mapping_of(const struct ev_map *v, uint32_t birth) {
    struct mapping m = {.start = v->start,
                        .end = v->end,
                        .offset = v->offset,
                        .prot = v->prot & ~MAP_UNSURE,
                        .flags = v->flags,
                        .file = {v->dev, v->ino, v->size, v->mtime_ns, v->ctime_ns, birth},
                        .was_writable = v->prot & MAP_UNSURE};
    memcpy(m.name, v->name, sizeof m.name - 1);
    return m;
}

static void put_map(struct thread *t, const struct mapping *m, int fd, uint64_t base) {
    long ret = aspace_restore(m, fd, base);
    if (ret) replay_diverged(t, NULL, "the program cannot be mapped", m->start, (uint64_t)-ret);
}

void replay_restore_shared(struct thread *t, const struct snapshot_region *r, bool is_twice) {
    struct mapping m = mapping_of(&r->map, r->birth);
    struct file_source from = {.fd = -1};
    m.tracked = r->flags & REGION_TRACKED;
    m.shows_shared = r->flags & REGION_SHOWS_SHARED;
    m.borrowed = r->flags & REGION_BORROWED;
    m.object = r->object;
    borrowed_any |= m.shows_shared;
    if (shared_is_file(r->object) || is_twice) from = contents_of(r->object, NULL);
    put_map(t, &m, from.fd, from.base);
}

void replay_restore_map(struct thread *t, const struct ev_map *v, uint32_t birth) {
    struct mapping m = mapping_of(v, birth);
    struct file_source from = {.fd = -1};
    if (!is_unnamed(&v->object)) {
        struct ev_mapped mapped = {.object = v->object,
                                   .dev = v->dev,
                                   .ino = v->ino,
                                   .size = v->size,
                                   .mtime_ns = v->mtime_ns,
                                   .ctime_ns = v->ctime_ns,
                                   .flags = (uint64_t)birth << 32};
        from = file_changes_source(&mapped);
    } else if (v->ino && v->size && (v->prot & PROT_EXEC)) {
        die("this recording cannot be replayed: it has not the contents of a file of %lu bytes that is executed; they could not be "
            "kept (was the disk full?)",
            v->size);
    }
    if (debug_is_on) m.flags = (m.flags & ~(uint32_t)MAP_TYPE) | MAP_PRIVATE; /* as in map_again() */
    put_map(t, &m, from.fd, from.base);
}

struct ev_syscall replay_take_call(struct thread *t, const struct event *e, uint64_t nr, const uint64_t a[6]) {
    replay_verify_call(t, e, nr, a);
    struct ev_syscall s = *(const struct ev_syscall *)(e + 1);
    if (e->flags & EVF_RESTORE_MASK) { signals_begin_wait(t, s.out_seq); }
    if (e->flags & EVF_OUTPUT) outputs_repeat(nr, a, s.out_fd, s.out_seq, s.ret);
    stream_take();
    return s;
}

void replay_ordinary(struct tblock *tb, const struct event *e, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    uint8_t call_flags = e->flags;
    struct ev_syscall s = replay_take_call(t, e, nr, a);
    gaddr stack = call_flags & (EVF_OUTPUT | EVF_RESTORE_MASK) ? 0 : s.out_seq;
    gaddr mapped = nr == __NR_mmap && !sys_failed(s.ret) ? (gaddr)s.ret + aspace_mmap_size(a[1], (int)a[3]) : 0;
    if (unlikely(stack)) aspace_put_stack(stack, true, mapped); /* makes way for what is mapped */
    /* files come behind a call's outputs, and mapping calls have none */
    do_again(tb, nr, a, s.ret);
    if (unlikely(stack)) aspace_put_stack(stack, false, 0);
    if (unlikely(debug_is_on) && (model_does(nr, a) != DOES_EMULATE || stack || limits_new_stack(t->process, nr, a)))
        debug_mapped();
    replay_take_outs(t, s.outs);
    gate_finish(tb, next, flags, s.ret);
    replay_arm(t);
}

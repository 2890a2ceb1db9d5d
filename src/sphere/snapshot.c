#include "sphere/snapshot.h"

#include <linux/prctl.h>

#include "engine/cache.h"
#include "inproc/hash.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/fork_advice.h"
#include "sphere/fpu_image.h"
#include "sphere/gate.h"
#include "sphere/objects.h"
#include "sphere/runtime.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/shared_left.h"
#include "sphere/sigframe.h"

#define FX_OPCODE 6
#define FX_IP 8 /* in the xsave area: addresses of the last x87 instruction and its operand, 16 bytes */
#define FX_REGISTERS 24
#define FX_END 416 /* what follows is not used by the processor */
#define XSTATE_MORE 576

static bool is_alive(const struct thread *t) {
    return __atomic_load_n(&t->in_use, __ATOMIC_ACQUIRE) && !t->service && t->awaits != AWAITS_NOTHING;
}

static size_t extended_size(void) { return (sigframe_extended_size() + 7) & ~7ul; }

static uint32_t count_threads(void) {
    uint32_t n = 0;
    for (struct thread *t = threads_first(); t; t = t->next) n += is_alive(t);
    return n;
}

static uint32_t count_regions(void) {
    uint32_t n = 0;
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++) n += !m.runtime;
    return n;
}

static size_t filters_len(const struct seccomp *s) {
    size_t n = 0;
    for (int i = 0; i < s->count; i++) n += seccomp_text_size(seccomp_nth(s, i));
    return (n + 7) & ~7ul;
}

static const struct snapshot_advice *advice; /* of the snapshot that is being taken */
static size_t n_advice;
static uint32_t n_objects, n_owned;

size_t snapshot_size(const struct thread *t) {
    n_advice = fork_advice_list(&advice);
    left_count(&n_objects, &n_owned);
    return sizeof(struct snapshot) + count_threads() * (sizeof(struct snapshot_thread) + extended_size()) +
           count_regions() * sizeof(struct snapshot_region) + n_advice * sizeof *advice +
           n_objects * sizeof(struct snapshot_object) + n_owned * sizeof(struct snapshot_owned) +
           filters_len(&t->seccomp);
}

/* ---- R-threads ---- */

/* Vector and x87 registers, and fs, of any R-thread; `room` is aligned to 64. */
static const uint8_t *extended_of(struct thread *who, const struct thread *self, uint8_t *room, uint64_t *fs_base) {
    if (who != self && who->scheduled) return schedule_extended_of(who, fs_base);
    *fs_base = schedule_fs_base();
    memset(room, 0, sigframe_extended_size());
    sigframe_save_extended(room);
    return room;
}

static uint8_t room[SNAPSHOT_EXTENDED_MAX] __attribute__((aligned(64)));

static uint32_t flags_of(const struct thread *t, bool runs) {
    uint32_t flags = 0;
    bool is_stopped = !runs && t->awaits == AWAITS_TRACER;
    if ((runs || is_stopped) && t->restore_mask)
        flags |= SNAPSHOT_RESTORE_MASK; /* others: their call's event will say so */
    if (is_stopped && t->debugged.in_call) flags |= SNAPSHOT_IN_CALL;
    if (t->tb->trap_flag) flags |= SNAPSHOT_TRAP_FLAG;
    if (t->tb->stepped) flags |= SNAPSHOT_STEPPED;
    if (t->reads_imply_exec) flags |= SNAPSHOT_READS_IMPLY_EXEC;
    if (t->debugged.has_op) flags |= SNAPSHOT_HAS_OP;
    if (t->legacy.under_way) flags |= SNAPSHOT_LEGACY;
    if (!runs && !t->parked) flags |= SNAPSHOT_OWES;
    return flags;
}

static uint32_t awaits_of(const struct thread *t, bool runs) {
    if (runs) return SNAPSHOT_RUNS;
    if (t->awaits == AWAITS_TRACER) return SNAPSHOT_STOP;
    return t->awaits == AWAITS_TURN ? SNAPSHOT_TURN : SNAPSHOT_CALL;
}

static void write_thread(struct snapshot_thread *out, struct thread *t, struct thread *self) {
    const struct tblock *tb = t->tb;
    bool runs = t == self;
    *out = (struct snapshot_thread){.number = t->number,
                                    .tid = t->tid,
                                    .awaits = awaits_of(t, runs),
                                    .flags = flags_of(t, runs),
                                    .ticks = ticks_total(tb),
                                    .pc = tb->pc,
                                    .rflags = tb->rflags,
                                    .gs_base = tb->guest_gs,
                                    .gs = tb->guest_gs_selector,
                                    .sigmask = t->sigmask,
                                    .saved_mask = t->saved_mask,
                                    .altstack_sp = t->altstack.sp,
                                    .altstack_size = t->altstack.size,
                                    .altstack_flags = t->altstack.flags,
                                    .legacy_nr = t->legacy.nr,
                                    .shown_err = t->shown_err,
                                    .shown_trapno = t->shown_trapno,
                                    .shown_cr2 = t->shown_cr2,
                                    .clear_tid = t->clear_tid,
                                    .robust_head = t->robust_head,
                                    .op_event = t->debugged.op_event,
                                    .op_ticks = t->debugged.op_ticks,
                                    .legacy_pc = t->legacy.pc,
                                    .legacy_next = t->legacy.next,
                                    .legacy_pops = t->legacy.pops};
    memcpy(out->gpr, tb->gpr, sizeof out->gpr);
    memcpy(out->legacy_gpr, t->legacy.gpr, sizeof out->legacy_gpr);
    memcpy(out->name, t->debugged.name, sizeof out->name);
    uint8_t *extended = (uint8_t *)(out + 1);
    uint64_t x87_ip;
    memset(extended, 0, extended_size());
    if (out->flags & SNAPSHOT_OWES) {
        schedule_extended_of(t, &out->fs_base);
        return;
    }
    memcpy(extended, extended_of(t, self, room, &out->fs_base), sigframe_extended_size());
    memcpy(&x87_ip, extended + FX_IP, 8);
    if (fpu_image_to_guest(&x87_ip, 8)) memcpy(extended + FX_IP, &x87_ip, 8);
}

/* ---- the whole ---- */

static uint32_t region_flags(const struct mapping *m) {
    return (m->tracked ? REGION_TRACKED : 0) | (m->shows_shared ? REGION_SHOWS_SHARED : 0) |
           (m->borrowed ? REGION_BORROWED : 0);
}

void snapshot_write(struct thread *t, uint64_t event, uint64_t position, uint64_t ended_ticks, void *to) {
    struct snapshot *s = to;
    *s = (struct snapshot){.magic = SNAPSHOT_MAGIC,
                           .event = event,
                           .position = position,
                           .n_threads = count_threads(),
                           .n_regions = count_regions(),
                           .thread = t->number,
                           .pid = (uint32_t)t->process->pid,
                           .xcr0 = sigframe_extended_mask(),
                           .extended_size = (uint32_t)extended_size(),
                           .mdwe = (uint16_t)the_runtime.mdwe,
                           .tiles = sigframe_has_tiles(),
                           .ended_ticks = ended_ticks,
                           .seccomp_mode = (uint32_t)t->seccomp.mode,
                           .n_filters = (uint32_t)t->seccomp.count,
                           .filters_len = filters_len(&t->seccomp),
                           .n_advice = (uint32_t)n_advice,
                           .anonymous = (uint32_t)shared_count_anonymous(),
                           .n_objects = n_objects,
                           .n_owned = n_owned};
    aspace_get_brk(&s->brk_start, &s->brk_end);
    for (int i = 0; i < SNAPSHOT_SIGNALS; i++) {
        const struct ksigaction *a = &t->process->action[i + 1];
        s->actions[i] = (struct snapshot_action){a->handler, a->flags, a->restorer, a->mask};
    }
    SYS(prctl, PR_GET_NAME, s->comm, 0, 0, 0);
    memcpy(s->exe, the_runtime.exe_path, sizeof s->exe - 1);
    uint8_t *at = (uint8_t *)(s + 1);
    for (struct thread *who = threads_first(); who; who = who->next) {
        if (!is_alive(who)) continue;
        write_thread((struct snapshot_thread *)at, who, t);
        at += sizeof(struct snapshot_thread) + extended_size();
    }
    struct mapping m;
    for (size_t i = 0; aspace_nth(i, &m); i++) {
        if (m.runtime) continue;
        *(struct snapshot_region *)at = (struct snapshot_region){
            .map = objects_map_of(&m), .object = m.object, .flags = region_flags(&m), .birth = m.file.birth};
        at += sizeof(struct snapshot_region);
    }
    memcpy(at, advice, n_advice * sizeof *advice);
    at += n_advice * sizeof *advice;
    left_write_objects((struct snapshot_object *)at);
    at += n_objects * sizeof(struct snapshot_object);
    left_write_owned((struct snapshot_owned *)at);
    at += n_owned * sizeof(struct snapshot_owned);
    for (int i = 0; i < t->seccomp.count; i++) {
        const struct seccomp_filter *f = seccomp_nth(&t->seccomp, i);
        seccomp_to_text(f, (char *)at);
        at += seccomp_text_size(f);
    }
}

/* ---- comparing ---- */

static uint64_t hash_thread(struct thread *who, struct thread *self) {
    const struct tblock *tb = who->tb;
    uint64_t fs_base, size = sigframe_extended_size();
    const uint8_t *extended = extended_of(who, self, room, &fs_base);
    const uint64_t words[] = {tb->pc,           ticks_total(tb),    fs_base,        tb->guest_gs,     who->sigmask,
                              who->altstack.sp, who->altstack.size, who->clear_tid, who->robust_head, who->number};
    uint64_t h = hash_bytes(tb->gpr, sizeof tb->gpr, 1);
    h = hash_bytes(words, sizeof words, h);
    if (who != self && who->awaits == AWAITS_CALL) return h; /* others do not know its vector registers */
    h = hash_bytes(extended, FX_OPCODE, h);
    h = hash_bytes(extended + FX_REGISTERS, FX_END - FX_REGISTERS, h);
    return size > XSTATE_MORE ? hash_bytes(extended + XSTATE_MORE, size - XSTATE_MORE, h) : h;
}

uint64_t snapshot_threads(struct thread *t, uint32_t *n) {
    uint64_t sum = 0;
    *n = 0;
    for (struct thread *who = threads_first(); who; who = who->next) {
        if (!is_alive(who)) continue;
        sum += hash_thread(who, t);
        ++*n;
    }
    return sum;
}

void snapshot_clear_host_words(struct thread *t) {
    for (uint64_t below = 8; below <= 16; below += 8) {
        uint64_t word, none = 0, at = t->tb->gpr[RSP] - below;
        if (!aspace_is_runtime(at, 8) && guest_read(&word, at, 8) && word && cache_contains(word))
            guest_write(at, &none, 8);
    }
}

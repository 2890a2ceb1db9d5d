#include "sphere/restore.h"

#include <linux/mman.h>
#include <linux/prctl.h>

#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/image.h"
#include "log/snapshot.h"
#include "sphere/aspace.h"
#include "sphere/channel.h"
#include "sphere/contents.h"
#include "sphere/debug.h"
#include "sphere/file_changes.h"
#include "sphere/fork_advice.h"
#include "sphere/replay.h"
#include "sphere/runtime.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/sigframe.h"
#include "sphere/sys/special.h"

#define ARCH_SET_FS 0x1002
#define BATCH 256 /* pages whose entries are read at once */
#define OWNED_MOST SHARED_CHUNK_PAGES

static void damaged(const char *what) __attribute__((noreturn));
static void damaged(const char *what) { die("a checkpoint of the recording is damaged: %s", what); }

static void read_at(int fd, void *to, uint64_t n, uint64_t at) {
    for (uint64_t done = 0; done < n;) {
        long got = SYS(pread64, fd, (uint8_t *)to + done, n - done, at + done);
        if (got <= 0) damaged("it is too short");
        done += (uint64_t)got;
    }
}

/* ---- memory ---- */

/* Reads n pages of the image to where they belong, which the program itself may not be able to write. */
static void fill_run(int fd, uint64_t from, gaddr to, uint64_t n) {
    uint64_t len = n * PAGE_SIZE;
    for (gaddr at = to; at < to + len;) {
        struct mapping m;
        if (!aspace_find(at, &m) || m.runtime) damaged("memory that is not mapped");
        uint64_t piece = MIN(m.end, to + len) - at;
        bool opened = !(m.prot & PROT_WRITE);
        if (opened) SYS(mprotect, at, piece, PROT_READ | PROT_WRITE);
        SYS(madvise, at, piece, MADV_POPULATE_WRITE); /* one fault instead of many; kernels before 5.14 do without */
        read_at(fd, (void *)at, piece, from + (at - to));
        if (opened) SYS(mprotect, at, piece, aspace_host_prot((int)m.prot));
        at += piece;
    }
}

/* Only some blocks of the page are in the image. */
static void fill_blocks(int fd, uint64_t from, const struct image_page *p) {
    static uint8_t bytes[PAGE_SIZE];
    struct mapping m;
    if (!aspace_find(p->address, &m) || m.runtime) damaged("memory that is not mapped");
    read_at(fd, bytes, PAGE_SIZE, from);
    bool opened = !(m.prot & PROT_WRITE);
    if (opened) SYS(mprotect, p->address, PAGE_SIZE, PROT_READ | PROT_WRITE);
    for (uint64_t i = 0; i < PAGE_SIZE / IMAGE_BLOCK; i++)
        if (p->blocks >> i & 1) memcpy((uint8_t *)p->address + i * IMAGE_BLOCK, bytes + i * IMAGE_BLOCK, IMAGE_BLOCK);
    if (opened) SYS(mprotect, p->address, PAGE_SIZE, aspace_host_prot((int)m.prot));
}

static const struct snapshot_object *objects; /* shared memory */
static uint64_t n_objects;

static gaddr address_in(const struct mapping *m, struct shared_at at) {
    uint64_t first = m->offset / PAGE_SIZE, n = (m->end - m->start) / PAGE_SIZE;
    bool shows = m->object == at.object && at.page >= first && at.page - first < n;
    return shows ? m->start + (at.page - first) * PAGE_SIZE : 0;
}

/* Where anonymous memory is mapped, tracked or not; 0: nowhere. */
static gaddr address_of(struct shared_at at) {
    static struct mapping m; /* the last one */
    gaddr addr = address_in(&m, at);
    for (size_t i = 0; !addr && aspace_nth(i, &m); i++) addr = address_in(&m, at);
    return addr;
}

/* A page of shared memory: of a file's contents, or wherever it is mapped. Anonymous memory that is not mapped any more is gone. */
static void fill_shared(int fd, uint64_t from, const struct image_page *p) {
    static uint8_t bytes[PAGE_SIZE], now[PAGE_SIZE];
    uint64_t slot = (p->address - SHARED_PAGES_AT) / SHARED_PAGES_ROOM;
    if (slot >= n_objects) damaged("a page of shared memory that is not there");
    struct shared_at at = {objects[slot].object, p->address % SHARED_PAGES_ROOM / PAGE_SIZE};
    if (!shared_is_file(at.object)) {
        struct image_page there = {address_of(at), p->blocks};
        if (there.address) fill_blocks(fd, from, &there);
        return;
    }
    struct file_source s = contents_of(at.object, NULL);
    read_at(fd, bytes, PAGE_SIZE, from);
    if (~p->blocks) read_at(s.fd, now, PAGE_SIZE, s.base + at.page * PAGE_SIZE);
    for (uint64_t i = 0; i < PAGE_SIZE / IMAGE_BLOCK; i++)
        if (!(p->blocks >> i & 1)) memcpy(bytes + i * IMAGE_BLOCK, now + i * IMAGE_BLOCK, IMAGE_BLOCK);
    if (SYS(pwrite64, s.fd, bytes, PAGE_SIZE, s.base + at.page * PAGE_SIZE) != PAGE_SIZE)
        die("no memory for shared files");
}

static void fill_batch(int fd, uint64_t from, const struct image_page *p, uint64_t n) {
    for (uint64_t i = 0, run; i < n; i += run) {
        run = 1;
        if (p[i].address % PAGE_SIZE) damaged("a page at an odd address");
        if (p[i].address >= SHARED_PAGES_AT) {
            fill_shared(fd, from + i * PAGE_SIZE, &p[i]);
            continue;
        }
        if (~p[i].blocks) {
            fill_blocks(fd, from + i * PAGE_SIZE, &p[i]);
            continue;
        }
        while (i + run < n && !~p[i + run].blocks && p[i + run].address == p[i].address + run * PAGE_SIZE) run++;
        fill_run(fd, from + i * PAGE_SIZE, p[i].address, run);
    }
}

static void fill_memory(int fd, const struct image_head *h) {
    struct image_page batch[BATCH];
    uint64_t pages = image_pages(h->snapshot_len), table = image_table(h->snapshot_len, h->n_pages);
    for (uint64_t i = 0; i < h->n_pages; i += BATCH) {
        uint64_t n = MIN(h->n_pages - i, (uint64_t)BATCH);
        read_at(fd, batch, n * sizeof *batch, table + i * sizeof *batch);
        fill_batch(fd, pages + i * PAGE_SIZE, batch, n);
    }
}

/* ---- R-threads ---- */

static struct seccomp filters; /* all R-threads have the same */

static void set_thread(struct thread *t, const struct snapshot_thread *s) {
    struct tblock *tb = t->tb;
    t->seccomp = filters;
    memcpy(tb->gpr, s->gpr, sizeof tb->gpr);
    tb->pc = s->pc;
    tb->rflags = s->rflags;
    tb->guest_gs = s->gs_base;
    tb->guest_gs_selector = (uint16_t)s->gs;
    tb->trap_flag = s->flags & SNAPSHOT_TRAP_FLAG;
    tb->stepped = s->flags & SNAPSHOT_STEPPED;
    t->reads_imply_exec = s->flags & SNAPSHOT_READS_IMPLY_EXEC;
    tb->tick_limit = ticks_left(tb) + (int64_t)s->ticks;
    t->number = s->number;
    t->tid = s->tid;
    t->sigmask = s->sigmask;
    t->saved_mask = s->saved_mask;
    t->restore_mask = s->flags & SNAPSHOT_RESTORE_MASK;
    t->altstack = (struct altstack){s->altstack_sp, s->altstack_flags, 0, s->altstack_size};
    t->shown_err = s->shown_err;
    t->shown_trapno = s->shown_trapno;
    t->shown_cr2 = s->shown_cr2;
    t->clear_tid = s->clear_tid;
    t->robust_head = s->robust_head;
    t->legacy = (struct legacy_call){.under_way = s->flags & SNAPSHOT_LEGACY,
                                     .nr = s->legacy_nr,
                                     .pc = s->legacy_pc,
                                     .next = s->legacy_next,
                                     .pops = s->legacy_pops};
    memcpy(t->legacy.gpr, s->legacy_gpr, sizeof t->legacy.gpr);
    t->debugged = (struct debugged){.op_event = s->op_event,
                                    .op_ticks = s->op_ticks,
                                    .has_op = s->flags & SNAPSHOT_HAS_OP,
                                    .in_call = s->awaits == SNAPSHOT_CALL || (s->flags & SNAPSHOT_IN_CALL),
                                    .counted = s->ticks};
    memcpy(t->debugged.name, s->name, sizeof t->debugged.name - 1);
}

static void make_thread(struct thread *first, const struct snapshot_thread *s) {
    struct thread *t = thread_new(first->process, first->files);
    if (!t) die("no memory for another R-thread");
    set_thread(t, s);
    t->tgid = first->process->pid;
    static const struct {
        void (*enter)(void);
        enum awaits awaits;
    } ways[] = {[SNAPSHOT_TURN] = {replay_enter_turn, AWAITS_TURN},
                [SNAPSHOT_CALL] = {replay_enter_call, AWAITS_CALL},
                [SNAPSHOT_STOP] = {replay_enter_stop, AWAITS_TRACER}};
    if (s->awaits >= ARRAY_LEN(ways) || !ways[s->awaits].enter) damaged("an R-thread that does not wait");
    schedule_add(t, ways[s->awaits].enter, s->fs_base);
    t->awaits = ways[s->awaits].awaits;
    t->owes = s->flags & SNAPSHOT_OWES; /* until then what is in the registers now is as good as anything */
    if (!t->owes) schedule_set_registers(t, (const uint8_t *)(s + 1), s->fs_base);
}

static void become_thread(struct thread *t, const struct snapshot_thread *s) {
    static uint8_t extended[SNAPSHOT_EXTENDED_MAX] __attribute__((aligned(64)));
    set_thread(t, s);
    SYS(arch_prctl, ARCH_SET_FS, s->fs_base);
    memcpy(extended, s + 1, sigframe_extended_size());
    sigframe_load_extended(extended);
}

/* The registers of t itself are set last: nothing of ours is to disturb them. */
static void restore_threads(struct thread *t, const struct snapshot *s) {
    const struct snapshot_thread *self = NULL;
    const uint8_t *at = (const uint8_t *)(s + 1);
    uint64_t ticks = s->ended_ticks;
    for (uint32_t i = 0; i < s->n_threads; i++) {
        const struct snapshot_thread *v = (const struct snapshot_thread *)at;
        ticks += v->ticks;
        if (v->number == s->thread)
            self = v;
        else
            make_thread(t, v);
        at += sizeof *v + s->extended_size;
    }
    if (!self) damaged("nobody runs");
    debug_begin_at(t, ticks);
    become_thread(t, self);
    if (self->op_event + 1 == s->event) t->debugged.op_pc = self->pc; /* that was the checkpoint itself */
}

/* ---- the whole ---- */

static uint64_t snapshot_len(const struct snapshot *s) {
    return sizeof *s + s->n_threads * (sizeof(struct snapshot_thread) + s->extended_size) +
           s->n_regions * sizeof(struct snapshot_region) + s->n_advice * sizeof(struct snapshot_advice) +
           s->n_objects * sizeof(struct snapshot_object) + s->n_owned * sizeof(struct snapshot_owned) + s->filters_len;
}

static void check(const struct snapshot *s, uint64_t len) {
    if (len < sizeof *s || s->magic != SNAPSHOT_MAGIC) damaged("it is of another version");
    if (s->n_threads > SNAPSHOT_THREADS_MAX || s->n_regions > SNAPSHOT_REGIONS_MAX ||
        s->extended_size > SNAPSHOT_EXTENDED_MAX)
        damaged("impossible numbers");
    if (s->filters_len > SNAPSHOT_FILTERS_MAX || s->n_advice > SNAPSHOT_ADVICE_MAX ||
        s->n_objects > SNAPSHOT_OBJECTS_MAX || s->n_owned > SNAPSHOT_OWNED_MAX)
        damaged("impossible numbers");
    if (snapshot_len(s) != len) damaged("its length");
    if (s->xcr0 != sigframe_extended_mask() || s->extended_size != ((sigframe_extended_size() + 7) & ~7ul))
        die("checkpoints of the recording are those of another processor");
}

static void restore_process(struct process *p, const struct snapshot *s) {
    for (int i = 0; i < SNAPSHOT_SIGNALS; i++) {
        const struct snapshot_action *a = &s->actions[i];
        p->action[i + 1] = (struct ksigaction){a->handler, a->flags, a->restorer, a->mask};
    }
    p->pid = (int)s->pid;
    the_runtime.mdwe = s->mdwe;
    if (s->tiles) sigframe_request_tiles();
    char comm[sizeof s->comm];
    memcpy(comm, s->comm, sizeof comm);
    comm[sizeof comm - 1] = '\0';
    SYS(prctl, PR_SET_NAME, comm, 0, 0, 0);
    char exe[sizeof s->exe];
    memcpy(exe, s->exe, sizeof exe);
    exe[sizeof exe - 1] = '\0';
    fmt_into(the_runtime.exe_path, sizeof the_runtime.exe_path, "%s", exe);
}

/* What others have written to a file that was inherited is known by who has its begin (SNAPSHOT_INHERITED). */
static void restore_object(const struct snapshot_object *o) {
    struct ev_mapped first = o->first;
    struct file_source to;
    first.flags = MAPPED_TRACKED | (first.flags & ~0xffffffffull);
    if (o->flags & SNAPSHOT_INHERITED) first.object = (struct object_name){0, 0};
    if (!shared_is_file(o->object)) return;
    if (first.ino && file_changes_object(&first) != o->object) damaged("a shared file");
    to = first.ino ? file_changes_source(&first) : contents_of(o->object, NULL);
    if (o->cut < SHARED_PAGES_ROOM) contents_cut(to, o->cut);
}

static void restore_shared(const struct snapshot *s) {
    const uint8_t *end = (const uint8_t *)s + snapshot_len(s) - s->filters_len;
    const struct snapshot_owned *owned = (const struct snapshot_owned *)end - s->n_owned;
    objects = (const struct snapshot_object *)owned - s->n_objects;
    n_objects = s->n_objects;
    for (uint32_t i = 0; i < s->n_objects; i++) restore_object(&objects[i]);
    for (uint32_t i = 0; i < s->n_owned; i++) {
        if (owned[i].n > OWNED_MOST || owned[i].page > SHARED_ROOM / PAGE_SIZE) damaged("pages that nobody can own");
        shared_set_owned(owned[i].object, owned[i].page, owned[i].n);
    }
}

/* Anonymous memory that another mapping shows, too. */
static bool is_shown_twice(const struct snapshot_region *r, uint32_t n, uint32_t i) {
    for (uint32_t k = 0; (r[i].map.flags & MAP_ANONYMOUS) && k < n; k++)
        if (r[k].object == r[i].object && k != i) return true;
    return false;
}

static void restore_mappings(struct thread *t, const struct snapshot *s) {
    const uint8_t *threads = (const uint8_t *)(s + 1);
    const struct snapshot_region *r =
        (const void *)(threads + s->n_threads * (sizeof(struct snapshot_thread) + s->extended_size));
    for (uint32_t i = 0; i < s->n_regions; i++) {
        bool is_shared = (r[i].flags & (REGION_TRACKED | REGION_SHOWS_SHARED)) || (r[i].map.flags & MAP_ANONYMOUS);
        if (r[i].object && is_shared)
            replay_restore_shared(t, &r[i], is_shown_twice(r, s->n_regions, i));
        else
            replay_restore_map(t, &r[i].map, r[i].birth);
    }
    shared_set_anonymous(s->anonymous);
    aspace_put_brk(s->brk_start, s->brk_end);
}

static void restore_advice(const struct snapshot *s) {
    fork_advice_restore((const struct snapshot_advice *)objects - s->n_advice, s->n_advice);
}

static void restore_filters(const struct snapshot *s) {
    const char *end = (const char *)s + snapshot_len(s), *at = end - s->filters_len;
    struct seccomp all = {0};
    for (uint32_t i = 0; i < s->n_filters; i++) {
        const char *text = at;
        while (at < end && *at) at++;
        if (at++ == end || !seccomp_from_text(&all, text)) damaged("its filters");
    }
    all.mode = (int)s->seccomp_mode;
    filters = all;
}

void restore_start(struct thread *t, uint64_t stream, int image) {
    struct image_head head;
    read_at(image, &head, sizeof head, 0);
    if (head.magic != IMAGE_MAGIC || head.snapshot_len > 1ull << 32 || head.n_pages > 1ull << 36) damaged("its head");
    struct snapshot *s = arena_pages(head.snapshot_len);
    read_at(image, s, head.snapshot_len, sizeof head);
    check(s, head.snapshot_len);
    if (!stream_attach_reader_at(fd_own() + 1, stream, s->position, s->event)) damaged("its place in the log");
    schedule_start(t);
    restore_process(t->process, s);
    shared_stay_open(true);
    restore_shared(s);
    restore_mappings(t, s);
    fill_memory(image, &head);
    shared_stay_open(false);
    restore_advice(s);
    SYS(close, image);
    t->tgid = t->process->pid;
    restore_filters(s);
    restore_threads(t, s);
    replay_go_on(t);
}

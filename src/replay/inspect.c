/* What the program's state is at the present place, as the debugger asks for it. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log/event_text.h"
#include "log/place.h"
#include "replay/timeline_parts.h"

#define GUEST_CS 0x33
#define GUEST_SS 0x2b
#define RSP 4 /* in worker_registers.gpr */

static const uint8_t order[16] = {0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15}; /* gdb's, in ours */

static int by_number(const void *a, const void *b) {
    const struct worker_thread *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* In the order in which they began. */
static size_t all_threads(struct timeline *t, struct worker_thread **list) {
    struct worker *w = stands(t);
    uint64_t n = session_ask(&t->session, w, ASK_THREADS, 0, 0);
    *list = (struct worker_thread *)session_slot(&t->session, w)->data;
    size_t most = WORKER_DATA / sizeof **list;
    if (n > most) n = most;
    qsort(*list, n, sizeof **list, by_number);
    return n;
}

bool inspect_thread(struct timeline *t, int tid, struct worker_thread *out) {
    struct worker_thread *list;
    size_t n = all_threads(t, &list);
    for (size_t i = 0; i < n; i++)
        if (list[i].tid == tid) {
            *out = list[i];
            return true;
        }
    return false;
}

/* R-thread by its thread id; 0 or the present one's need no question. */
static bool number_of(struct timeline *t, int tid, uint32_t *number) {
    struct worker *w = stands(t);
    *number = w->stop.place.thread;
    if (!tid || tid == w->stop.tid) return true;
    struct worker_thread who;
    if (!inspect_thread(t, tid, &who)) return false;
    *number = who.number;
    return true;
}

static const struct worker_registers *fetch(struct timeline *t, struct worker *w, uint32_t number) {
    uint64_t n = session_ask(&t->session, w, ASK_REGISTERS, number, 0);
    const struct worker_registers *r = (const struct worker_registers *)session_slot(&t->session, w)->data;
    bool good = n >= sizeof *r && n <= WORKER_DATA && r->xsave_size <= n - sizeof *r;
    return good && r->xsave_size <= sizeof((struct registers *)0)->xsave ? r : NULL;
}

bool inspect_registers(struct target *target, int tid, struct registers *out) {
    struct timeline *t = timeline_of(target);
    uint32_t number;
    bool is_present = !tid || tid == t->now->stop.tid; /* the others have not run since */
    if (is_present) trail_is_not_enough(t);
    if (is_present && !trail_settle(t)) return false;
    const struct worker_registers *r = number_of(t, tid, &number) ? fetch(t, stands(t), number) : NULL;
    if (!r) return false;
    memset(out, 0, offsetof(struct registers, xsave));
    for (int i = 0; i < 16; i++) out->gpr[i] = r->gpr[order[i]];
    out->rip = r->pc;
    out->eflags = r->rflags;
    out->fs_base = r->fs_base;
    out->gs_base = r->gs_base;
    out->orig_rax = r->orig_rax;
    out->cs = GUEST_CS;
    out->ss = GUEST_SS;
    out->gs = r->gs;
    out->xcr0 = r->xcr0;
    out->xsave_size = r->xsave_size;
    memcpy(out->xsave, r->xsave, r->xsave_size);
    return true;
}

bool inspect_general(struct target *target, int tid, struct registers *out) {
    struct timeline *t = timeline_of(target);
    const struct worker_stop *s = &t->now->stop;
    if (t->diversion || t->now->is_gone || (tid && tid != s->tid)) return inspect_registers(target, tid, out);
    const struct worker_past *p = trail_is_ahead(t) ? trail_here(t) : NULL;
    for (int i = 0; i < 16; i++) out->gpr[i] = (p ? p->gpr : s->gpr)[order[i]];
    out->rip = p ? p->pc : s->pc;
    return true;
}

/* Any R-thread may have been sent elsewhere: the one that goes on in the diversion. A debugger that has called a function puts
 * registers back; what else the function changed is there until the program goes on. */
static uint32_t diverted_thread(struct timeline *t) {
    struct worker_thread *list;
    size_t n = all_threads(t, &list);
    for (size_t i = 0; i < n; i++)
        if (list[i].is_current) return list[i].number;
    return t->now->stop.place.thread;
}

bool inspect_is_where_recorded(struct timeline *t) {
    uint32_t number = diverted_thread(t);
    const struct worker_registers *r = fetch(t, t->diversion, number);
    if (!r) return false;
    uint64_t pc = r->pc, rsp = r->gpr[RSP];
    r = fetch(t, t->now, number);
    return r && r->pc == pc && r->gpr[RSP] == rsp;
}

bool inspect_has_left(struct target *target) {
    struct timeline *t = timeline_of(target);
    return t->diversion && !inspect_is_where_recorded(t);
}

bool inspect_set_registers(struct target *target, int tid, const struct registers *in) {
    struct timeline *t = timeline_of(target);
    uint32_t number;
    if (!number_of(t, tid, &number)) return false;
    struct worker *w = timeline_divert(t);
    if (!w) return false;
    struct worker_registers *r = (struct worker_registers *)session_slot(&t->session, w)->data;
    if (in->xsave_size > WORKER_DATA - sizeof *r || in->xsave_size > sizeof in->xsave) return false;
    for (int i = 0; i < 16; i++) r->gpr[order[i]] = in->gpr[i];
    r->pc = in->rip;
    r->rflags = in->eflags;
    r->fs_base = in->fs_base;
    r->gs_base = in->gs_base;
    r->xsave_size = in->xsave_size;
    memcpy(r->xsave, in->xsave, in->xsave_size);
    return session_ask(&t->session, w, ASK_SET_REGISTERS, number, 0) == 1;
}

size_t inspect_memory(struct target *target, uint64_t addr, void *to, size_t n) {
    struct timeline *t = timeline_of(target);
    if (trail_is_ahead(t) && !t->diversion) return trail_read(t, addr, to, n);
    return memory_read(t, stands(t), addr, to, n);
}

bool inspect_is_elsewhere(struct target *target, uint64_t addr) {
    struct timeline *t = timeline_of(target);
    trail_is_not_enough(t);
    trail_settle(t);
    return session_ask(&t->session, stands(t), ASK_ELSEWHERE, addr, 0) == 1;
}

bool inspect_set_memory(struct target *target, uint64_t addr, const void *from, size_t n) {
    struct timeline *t = timeline_of(target);
    struct worker *w = timeline_divert(t);
    for (size_t done = 0; w && done < n;) {
        size_t k = n - done < WORKER_DATA ? n - done : WORKER_DATA;
        memcpy(session_slot(&t->session, w)->data, (const uint8_t *)from + done, k);
        if (session_ask(&t->session, w, ASK_WRITE, addr + done, k) != k) return false;
        done += k;
    }
    return w != NULL;
}

size_t inspect_threads(struct target *target, struct thread_facts *out, size_t cap) {
    struct timeline *t = timeline_of(target);
    struct worker_thread *list;
    size_t n = all_threads(t, &list), k = 0;
    const char *slash = strrchr(t->exe, '/');
    for (size_t i = 0; i < n && k < cap; i++) {
        if (!list[i].tid) continue; /* its number is not known yet */
        struct thread_facts *f = &out[k++];
        f->tid = list[i].tid;
        snprintf(f->name, sizeof f->name, "%.15s", list[i].name[0] ? list[i].name : slash ? slash + 1 : t->exe);
        const char *call = syscall_name((unsigned)list[i].call);
        if (list[i].in_call && call)
            snprintf(f->state, sizeof f->state, "in %s(%#lx, %#lx, %#lx)", call, list[i].args[0], list[i].args[1],
                     list[i].args[2]);
        else if (list[i].in_call)
            snprintf(f->state, sizeof f->state, "in system call %lu", list[i].call);
        else
            snprintf(f->state, sizeof f->state, "%s", list[i].is_current ? "running" : "waiting for its turn");
    }
    return k;
}

static const char *path_of(const struct recording *r, uint64_t dev, uint64_t ino) {
    for (size_t i = 0; ino && i < r->n_objects; i++)
        if (r->objects[i].object.dev == dev && r->objects[i].object.ino == ino) return r->objects[i].path;
    return "";
}

size_t inspect_regions(struct target *target, struct memory_region *out, size_t cap) {
    struct timeline *t = timeline_of(target);
    trail_settle(t);
    struct worker *w = stands(t);
    const struct worker_region *list = (const struct worker_region *)session_slot(&t->session, w)->data;
    size_t k = 0;
    for (size_t first = 0;;) {
        uint64_t n = session_ask(&t->session, w, ASK_REGIONS, first, 0);
        if (!n || n > WORKER_DATA / sizeof *list) break;
        for (size_t i = 0; i < n && k < cap; i++) {
            struct memory_region *m = &out[k++];
            *m = (struct memory_region){
                .start = list[i].start, .end = list[i].end, .offset = list[i].offset, .prot = list[i].prot};
            const char *path = path_of(t->options.recording, list[i].dev, list[i].ino);
            snprintf(m->name, sizeof m->name, "%.*s", 255, list[i].name[0] ? list[i].name : path);
        }
        first += n;
        if (k == cap) break;
    }
    return k;
}

size_t inspect_auxv(struct target *target, void *to, size_t cap) {
    struct timeline *t = timeline_of(target);
    if (t->auxv_end <= t->auxv_start) return 0;
    size_t n = t->auxv_end - t->auxv_start;
    return inspect_memory(target, t->auxv_start, to, n < cap ? n : cap);
}

/* As /proc/PID/cmdline: the program may have changed them. */
size_t inspect_arguments(struct target *target, void *to, size_t cap) {
    const struct timeline *t = timeline_of(target);
    if (t->arg_end <= t->arg_start) return 0;
    size_t n = t->arg_end - t->arg_start;
    return inspect_memory(target, t->arg_start, to, n < cap ? n : cap);
}

size_t inspect_siginfo(struct target *target, void *to, size_t cap) {
    struct timeline *t = timeline_of(target);
    if (!trail_settle(t)) return 0;
    const struct worker *w = inspect_has_left(target) ? t->diversion : t->now;
    const struct worker_stop *s = &w->stop;
    if (s->reason != WORKER_SIGNAL && s->reason != WORKER_EXITED) return 0;
    if (!s->has_siginfo) return 0;
    size_t n = cap < sizeof s->siginfo ? cap : sizeof s->siginfo;
    memcpy(to, s->siginfo, n);
    return n;
}

bool inspect_exe_path(struct target *target, char *out, size_t cap) {
    const struct timeline *t = timeline_of(target);
    return t->exe[0] && (size_t)snprintf(out, cap, "%s", t->exe) < cap;
}

int inspect_open_file(struct target *target, const char *path) {
    const struct timeline *t = timeline_of(target);
    const struct recording *r = t->options.recording;
    char file[OBJECT_FILE], full[PATH_MAX + 64];
    for (size_t i = r->n_objects; i-- > 0;) {
        if (strcmp(r->objects[i].path, path) != 0) continue;
        object_file(r->objects[i].object.name, file);
        snprintf(full, sizeof full, "%s/%s", t->store, file);
        return open(full, O_RDONLY | O_CLOEXEC);
    }
    return -1;
}

#include "sphere/replay_parts.h"

#include <linux/futex.h>
#include <linux/time_types.h>

#include "inproc/fmt.h"
#include "inproc/sys.h"
#include "sphere/borrowed.h"
#include "sphere/debug.h"
#include "sphere/debug_watch.h"
#include "sphere/file_changes.h"
#include "sphere/outputs.h"
#include "sphere/page_log.h"
#include "sphere/recorded_insn.h"
#include "sphere/runtime.h"
#include "sphere/shared_values.h"

/* Tenths of a second without any progress, while nobody computes. */
#define STUCK_AFTER 1200
#define CUT_AFTER 20 /* what is missing was not recorded any more, if the recording of some process just stops */

struct patience {
    uint64_t progress;
    int quiet;
};

/* Another tenth of a second is over. True: it cannot come any more. */
static bool is_used_up(struct patience *p) {
    struct shared_tables *tables = shared_tables();
    uint64_t seen = __atomic_load_n(&tables->progress, __ATOMIC_RELAXED);
    bool goes_on = seen != p->progress || outputs_others_go_on();
    p->progress = seen;
    p->quiet = goes_on ? 0 : p->quiet + 1;
    if (p->quiet >= CUT_AFTER && __atomic_load_n(&tables->cut, __ATOMIC_ACQUIRE)) replay_cut_off();
    return p->quiet >= STUCK_AFTER;
}

/* later: or a version behind it */
static void await_version(struct thread *t, const struct event *e, struct shared_page *p, uint32_t version, bool later) {
    struct patience patience = {0};
    uint32_t now;
    while ((now = __atomic_load_n(&p->version, __ATOMIC_ACQUIRE)) != version && !(later && (int32_t)(now - version) > 0)) {
        struct __kernel_timespec timeout = {0, 100000000};
        if (SYS(futex, &p->version, FUTEX_WAIT, now, &timeout, 0, 0) != -ETIMEDOUT) continue;
        if (is_used_up(&patience)) replay_diverged(t, e, "a shared page does not come", version, now);
    }
}

static void await_end(struct thread *t, const struct event *e, uint64_t stream) {
    struct patience patience = {0};
    for (int i = 1; stream < SHARED_STREAMS && !shared_has_ended(stream); i++) {
        struct __kernel_timespec ms = {0, 1000000};
        SYS(nanosleep, &ms, 0);
        if (i % 100 == 0 && is_used_up(&patience))
            replay_diverged(t, e, "the owner of a shared page does not end", stream, 0);
    }
}

void replay_note_cut(void) {
    struct shared_tables *s = the_channel->shares ? shared_tables() : NULL;
    if (s) __atomic_add_fetch(&s->cut, 1, __ATOMIC_RELEASE);
}

void replay_note_end(void) {
    struct shared_tables *s = the_channel->shares ? shared_tables() : NULL;
    if (!s) return;
    shared_set_ended(the_stream.number);
    __atomic_add_fetch(&s->progress, 1, __ATOMIC_RELAXED);
}

static struct shared_page *page_of(const struct ev_page *v) {
    struct shared_at at = {v->object, v->page};
    if (!shared_tables()) die("stream %lu shares memory that is not there", the_stream.number);
    return &shared_tables()->pages[shared_index(at, 0)];
}

static void set_version(struct shared_page *p, uint32_t version) {
    __atomic_store_n(&p->version, version, __ATOMIC_RELEASE);
    __atomic_add_fetch(&shared_tables()->progress, 1, __ATOMIC_RELAXED);
    SYS(futex, &p->version, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

void replay_release(const struct event *e) {
    const struct ev_page *v = (const struct ev_page *)(e + 1);
    struct shared_at at = {v->object, v->page};
    if (unlikely(page_log_is_written)) page_log_released(at);
    shared_give(at);
    if (likely(!debug_is_on)) set_version(page_of(v), v->version + 1);
}

/* The page comes when its owner has released it, or has ended. */
static void await_page(struct thread *t, const struct event *e, const struct ev_page *v) {
    struct shared_page *p = page_of(v);
    bool was_released = !v->from && v->writable != 2;
    if (was_released) {
        await_version(t, e, p, v->version, false);
        return;
    }
    if (v->from) await_end(t, e, v->from - 1);
    await_version(t, e, p, v->version - 1 - v->lost, true); /* who was killed while it released the page has come further */
    set_version(p, v->version);
}

/* In a worker, which is alone. */
static void fill_page(struct thread *t, struct shared_at at, const struct event *e) {
    const struct ev_contents *c = event_contents(e);
    bool is_known =
        c ? page_log_put(at, c->blocks, c->flags & CONTENTS_WHOLE, (const uint8_t *)(c + 1)) : page_log_fill(at);
    if (!is_known) debug_end(t, WORKER_FAILED, 0, "what this process shares with others is not known here");
}

/* Contents of a page that was nobody's, or of a process that was killed, come behind the event. */
static void verify_page(struct thread *t, const struct event *e, const struct ev_page *v) {
    const struct ev_contents *c = event_contents(e);
    struct shared_at at = {v->object, v->page};
    if (!c || v->from || v->writable == 2) return;
    if (!page_log_is(at, c->blocks, c->flags & CONTENTS_WHOLE, (const uint8_t *)(c + 1)))
        replay_diverged(t, e, "what a shared page holds", v->object, v->page);
}

static bool can_be_read(gaddr addr) {
    struct {
        uint64_t base, len;
    } here = {(uint64_t) & (uint8_t){0}, 1}, there = {addr, 1};
    long self = SYS(getpid);
    return SYS(process_vm_readv, self, &here, 1, &there, 1, 0) == 1;
}

/* Pages of a private mapping are the program's own from now on; what they hold follows. */
static void take_copy(struct thread *t, const struct event *e) {
    const struct ev_page *v = (const struct ev_page *)(e + 1);
    gaddr start = v->page * PAGE_SIZE, end = start + (uint64_t)v->version * PAGE_SIZE;
    if (!borrowed_pages(start) || v->version > borrowed_pages(start))
        replay_diverged(t, e, "a copy of a shared file", start, v->version);
    if (!v->version) return stream_take(); /* there was nothing */
    struct mapping m;
    borrowed_open(start, end);
    stream_take();
    const struct event *what = stream_peek(); /* in a part of the file that it had not when it was kept, maybe */
    if (what && what->kind == EV_MEMORY && aspace_find(start, &m) && !can_be_read(start))
        file_changes_grow(m.file.dev, m.file.ino);
    replay_take_memory(t);
    for (gaddr page = start; unlikely(debug_is_on) && page < end; page += PAGE_SIZE) watch_came(page);
}

void replay_acquire_next(struct thread *t, const struct event *e) {
    replay_verify(t, e, EV_ACQUIRE, "shared page");
    struct ev_page v = *(const struct ev_page *)(e + 1);
    if (v.writable == PAGE_COPIED) return take_copy(t, e);
    if (v.writable == PAGE_AWAITED) {
        if (likely(!debug_is_on) && v.from) await_end(t, e, v.from - 1);
        return stream_take();
    }
    struct shared_at at = {v.object, v.page};
    if (likely(!debug_is_on)) await_page(t, e, &v);
    bool is_here = shared_owns(at); /* another R-thread has got it */
    shared_active = true;
    shared_take(at);
    if (unlikely(debug_is_on) && !is_here) fill_page(t, at, e);
    if (unlikely(the_runtime.verify) && !debug_is_on && !is_here) verify_page(t, e, &v);
    if (unlikely(page_log_is_written) && !is_here) page_log_acquired(at);
    stream_take();
    if (v.from || v.writable == 2) replay_take_memory(t);
}

static void came(const struct mapping *m, gaddr addr) { watch_came(addr); }

/* In a worker, which is alone: pages that are nobody's show what the process has seen and left in them. */
static void show_page(struct thread *t, struct shared_at at, const struct event *e) {
    const struct ev_contents *c = event_contents(e);
    if (watch_is_any()) shared_each_view(at, came);
    if (c && !page_log_put(at, c->blocks, c->flags & CONTENTS_WHOLE, (const uint8_t *)(c + 1)))
        debug_end(t, WORKER_FAILED, 0, "what this process has seen of shared memory has no place here");
}

static void show_value(struct thread *t, struct shared_at at, const struct value_access *a, const struct value *value) {
    if (unlikely(page_log_is_written)) page_log_shown(at);
    if (unlikely(debug_is_on) && !page_log_put_value(at, a->addr, value, a->size))
        debug_end(t, WORKER_FAILED, 0, "a value of shared memory has no place here");
}

/* mode.access: the log has the value. One who faulted is there for certain; others have pages yet that go on the way to it. */
bool replay_access(struct thread *t, struct shared_at at, const struct value_access *a, bool faulted) {
    const struct event *e = faulted ? replay_next_of(t) : stream_peek();
    if (!e || e->thread != t->number || e->kind != EV_INSN || e->code != RECORDED_SHARED) return false;
    if (!faulted && (e->ticks != ticks_total(t->tb) || e->regs != event_regs(t->tb))) return false;
    replay_verify(t, e, EV_INSN, "a shared value");
    if (unlikely(debug_is_on) && !faulted) debug_op(t, false);
    const struct ev_insn *v = (const struct ev_insn *)(e + 1);
    struct value value = {{v->rax, v->rbx, v->rcx, v->rdx}};
    bool is_shown = v->flags & INSN_SHOWN;
    if (unlikely(debug_is_on) && is_shown) show_page(t, at, e);
    stream_take();
    values_run(t, a, &value);
    if (is_shown) show_value(t, at, a, &value);
    replay_set_budget(t);
    return true;
}

static bool is_value_here(struct thread *t, const struct event *e) {
    return e->kind == EV_INSN && e->code == RECORDED_SHARED && e->ticks == ticks_total(t->tb) &&
           e->regs == event_regs(t->tb);
}

/* mode.acquire: the log has the page that is needed, as the next thing that t does. What comes behind it is for later. */
void replay_acquire(struct thread *t, struct shared_at at, gaddr addr) {
    bool got_others = false;
    do { /* also if another R-thread has got it meanwhile */
        const struct event *e = replay_next_of(t);
        /* the page became nobody's while t waited, and that of the instruction itself had gone: it begins again */
        if (got_others && t->access_will_do && is_value_here(t, e)) break;
        if (e->kind != EV_ACQUIRE) replay_diverged(t, e, "access to a shared page of others", e->kind, EV_ACQUIRE);
        replay_acquire_next(t, e);
        got_others = true;
    } while (!shared_owns(at));
    replay_set_budget(t);
}

/* mode.copy */
void replay_copy(struct thread *t, gaddr addr, bool faulted) {
    bool is_done;
    do {
        const struct event *e = replay_next_of(t);
        if (e->kind != EV_ACQUIRE) replay_diverged(t, e, "access to a borrowed page", e->kind, EV_ACQUIRE);
        const struct ev_page *v = (const struct ev_page *)(e + 1);
        is_done = v->writable == PAGE_COPIED && !v->version && v->page == addr / PAGE_SIZE;
        replay_acquire_next(t, e);
    } while (!is_done && borrowed_pages(addr));
    replay_set_budget(t);
}

/* Memory of other processes of the sphere: they read and write it themselves, so that what is written is in their stream, and drops
 * their translations. */
#include <linux/time_types.h>

#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/forced_write.h"
#include "sphere/gate.h"
#include "sphere/listener.h"
#include "sphere/mode.h"
#include "sphere/task_state.h"
#include "sphere/traced.h"

#define LOOK_AFTER_MS 100
#define PATIENCE_MS 5000 /* until a process is taken for one that will never answer */

static bool is_in_our_memory(int tid) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use && t->tid == tid) return true;
    return false;
}

static long in_our_memory(enum letter_kind kind, gaddr addr, void *bytes, uint32_t len) {
    if (kind == LETTER_PEEK) return guest_read(bytes, addr, len) ? 0 : -EIO;
    if (kind == LETTER_MAPPING) return aspace_nth(addr, bytes) ? 0 : -EIO;
    if (kind == LETTER_CHANGES) return 0; /* we know */
    return forced_write(addr, bytes, len, kind == LETTER_POKE) ? 0 : -EIO;
}

static bool is_question(enum letter_kind kind) { return kind == LETTER_PEEK || kind == LETTER_MAPPING; }

/* What the program itself does with its call; other letters are ours, in front of any. */
static bool is_write(enum letter_kind kind) { return kind == LETTER_WRITE || kind == LETTER_POKE; }

static bool open_letter(struct trace_letter *l) {
    uint32_t none = LETTER_NONE;
    return __atomic_compare_exchange_n(&l->kind, &none, LETTER_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void send(struct tracee *e, enum letter_kind kind, gaddr addr, const void *bytes, uint32_t len) {
    struct trace_letter *l = &e->letter;
    l->addr = addr;
    l->len = len;
    l->done = 0;
    if (!is_question(kind)) memcpy(l->bytes, bytes, len);
    if (is_write(kind)) thread_self()->wrote_elsewhere = true;
    __atomic_store_n(&l->kind, kind, __ATOMIC_SEQ_CST);
}

bool trace_lend_turn(void) {
    bool lends = the_mode->trace_turn && !thread_self()->turn_lent;
    if (lends) the_mode->trace_turn(thread_self(), false);
    return lends;
}

void trace_turn_back(bool was_lent) {
    if (was_lent) the_mode->trace_turn(thread_self(), true);
}

static uint64_t now_ms(void) {
    struct __kernel_timespec now;
    SYS(clock_gettime, 1 /* CLOCK_MONOTONIC */, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Kicks, too, end the wait; and whoever is asked may have been busy with another one's letter when the last kick came. */
static long await_answer(struct tracee *e, enum letter_kind kind, void *bytes, uint32_t len) {
    struct trace_letter *l = &e->letter;
    struct thread *t = thread_self();
    uint64_t begin = now_ms(), looked = begin;
    long ret = 0;
    bool lent = trace_lend_turn();
    while (ret == 0 && __atomic_load_n(&l->kind, __ATOMIC_ACQUIRE) != LETTER_ANSWERED) {
        trace_futex_wait(&l->kind, kind, LOOK_AFTER_MS);
        traced_answer(t);
        uint64_t now = now_ms();
        if (now - looked < LOOK_AFTER_MS) continue;
        looked = now;
        if (task_is_gone(e->tgid) || now - begin >= PATIENCE_MS) ret = -ESRCH;
        if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == TRACEE_RUNS) trace_kick(e->tgid, e->tid);
    }
    trace_turn_back(lent);
    if (ret == 0 && l->done != len) ret = -EIO;
    if (ret == 0 && is_question(kind)) memcpy(bytes, l->bytes, len);
    __atomic_store_n(&l->kind, LETTER_NONE, __ATOMIC_RELEASE);
    return ret;
}

long trace_ask(struct tracee *e, enum letter_kind kind, gaddr addr, void *bytes, uint32_t len) {
    if (is_in_our_memory(e->tid)) return in_our_memory(kind, addr, bytes, len);
    while (!open_letter(&e->letter)) SYS(sched_yield); /* somebody else asks */
    send(e, kind, addr, bytes, len);
    __atomic_add_fetch(&e->bell, 1, __ATOMIC_SEQ_CST);
    trace_futex_wake(&e->bell);
    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == TRACEE_RUNS) trace_kick(e->tgid, e->tid);
    return await_answer(e, kind, bytes, len);
}

static struct tracee *find_of(int tgid) {
    struct trace_table *table = trace_table();
    for (struct tracee *e = table->tracees; e < table->tracees + TRACE_TRACEES; e++) {
        uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
        if (e->tgid == tgid && e->tid && !e->visits && (state == TRACEE_STOPPED || state == TRACEE_RUNS)) return e;
    }
    return NULL;
}

struct tracee *trace_stopped(int tgid) {
    struct tracee *e = trace_table() ? find_of(tgid) : NULL;
    return e && __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == TRACEE_STOPPED ? e : NULL;
}

/* Another process may be at it. */
static struct tracee *claim_for_visit(int tgid) {
    struct __kernel_timespec ms = {0, 1000000};
    struct thread *t = thread_self();
    struct tracee *e = trace_claim(tgid, tgid, 0);
    if (likely(e)) return e;
    bool lent = trace_lend_turn();
    for (uint64_t begin = now_ms(); !e && now_ms() - begin < PATIENCE_MS && !task_is_gone(tgid);) {
        SYS(nanosleep, &ms, 0);
        traced_answer(t);
        e = trace_claim(tgid, tgid, 0);
    }
    trace_turn_back(lent);
    return e;
}

long trace_write(int tgid, enum letter_kind kind, gaddr addr, void *bytes, uint32_t len) {
    if (is_in_our_memory(tgid)) return in_our_memory(kind, addr, bytes, len);
    long ret;
    struct tracee *e = find_of(tgid);
    if (e) return trace_ask(e, kind, addr, bytes, len);
    if (is_write(kind) && listener_writes(tgid, addr, bytes, len, &ret)) {
        thread_self()->wrote_elsewhere = true;
        return ret;
    }
    e = claim_for_visit(tgid);
    if (!e) return -ESRCH;
    e->visits = true;
    send(e, kind, addr, bytes, len);
    trace_publish(e);
    trace_kick(tgid, tgid);
    ret = await_answer(e, kind, bytes, len);
    trace_free(e);
    return ret;
}

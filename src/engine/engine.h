/* Engine: runs guest code out of the code cache.
 * It reaches the sphere only through struct engine_host. */
#ifndef REPRISE_ENGINE_H
#define REPRISE_ENGINE_H

#include "engine/cache.h"
#include "engine/decode.h"
#include "engine/policy.h"
#include "engine/tblock.h"

enum special { /* instructions that leave the cache to be done by hand */
               SPECIAL_INT,
               SPECIAL_FAR,
               SPECIAL_INVALID, /* bytes that do not decode */
               SPECIAL_XBEGIN,
               SPECIAL_GSBASE,
               SPECIAL_SEGREG,
               SPECIAL_POPF,
               SPECIAL_RECORDED,  /* cpuid; policy.intercept: its result is recorded */
               SPECIAL_PAUSE,     /* policy.intercept */
               SPECIAL_XSAVE,     /* policy.intercept: what it stores is the program's business alone */
               SPECIAL_FPU_STORE, /* done already; what it stored names an address of the cache */
               SPECIAL_BREAK,     /* engine_host.has_break: somebody wants to see the thread before the instruction */
               SPECIAL_STORE, /* the store in front of which we are may be watched: the engine itself asks the host */
               SPECIAL_STALE, /* the bytes of a checked block have changed: the engine itself sees to it */
               SPECIAL_WORN,  /* a block was checked so often that its page had better be protected: likewise */
};

/* How a thread goes on that has been seen in front of an instruction. */
enum break_end {
    BREAK_ELSEWHERE, /* at t->pc, like any other */
    BREAK_PASSED,    /* with the instruction */
    BREAK_DONE,      /* behind it: it has been done, and t->pc is the next one's */
};

/* A stretch of guest memory that may be executed. */
struct code_range {
    gaddr end;    /* executable and readable from pc up to here */
    bool checked; /* bytes may change unseen: blocks verify themselves at entry */
    bool watched; /* bytes may change, which drops the blocks: threads that go round in them have to leave */
    /* Checked for now: each check takes one from here, and the one that gets below zero says so (engine_host.worn). NULL: for good. */
    int32_t *patience;
};

/* What the engine asks of the sphere. */
struct engine_host {
    /* May pc be executed? False: a jump there faults. Also makes the pages readable and tracks writes to them. */
    bool (*code_at)(gaddr pc, struct code_range *out);
    void (*syscall)(struct tblock *t); /* t->pc is behind the syscall instruction */
    void (*special)(struct tblock *t, enum special what);
    void (*bad_pc)(struct tblock *t);     /* t->pc cannot be executed: deliver the fault */
    void (*bad_target)(struct tblock *t); /* the instruction at t->pc goes to an address that cannot be one */
    void (*step_trap)(struct tblock *t);  /* deliver the trap of an instruction that ran with the trap flag set */
    void (*safepoint)(struct tblock *t);  /* something is pending */
    void (*debug)(struct tblock *t);      /* t->debug: about to go on at t->pc, with all state in place */
    bool (*has_break)(gaddr pc);          /* NULL: no breakpoints */
    /* SPECIAL_BREAK. Translated code that the thread has come from is still held: who waits in there calls cache_idle(), and the
     * thread goes on elsewhere. */
    enum break_end (*at_break)(struct tblock *t);
    /* In front of a store that may be watched, see store_filter.h. True: it is executed next. */
    bool (*store)(struct tblock *t);
    /* The block at pc has been checked more often than it was meant to be (code_range.patience). Caller holds cache_lock. */
    void (*worn)(gaddr pc);
    /* Translations were loaded that know of no breakpoints. Caller holds cache_lock. */
    void (*kept_loaded)(gaddr lo, gaddr hi);
    /* The budget of ticks is used up, at a tick point that is not executed yet; sets a new one. NULL: there is no limit. */
    void (*tick_budget)(struct tblock *t);
    uint64_t (*oldest_epoch)(void);      /* over all threads of the address space */
    void (*hurry)(uint64_t epoch);       /* brings threads whose epoch is older to a safepoint, soon */
    bool (*is_free)(gaddr lo, gaddr hi); /* whether the program has nothing there. Caller holds cache_lock */
    bool (*claim)(gaddr at, size_t len); /* takes guest address space for a cache window; false: not free */
    void (*unclaim)(gaddr at, size_t len);
    /* The file whose unchanged code is at pc (base, text_start, text_end and identity); false: not such code. */
    bool (*kept_at)(gaddr pc, struct kept_file *out);
    /* The first address of the code of a program that is too large for the library area; 0: it is none. Called with cache_lock held. */
    gaddr (*huge_code)(void);
};

extern struct engine_host engine_host;

void engine_start(const struct policy *policy);

/* Fills the function slots of a fresh thread block. */
void engine_init_tblock(struct tblock *t);

static inline int32_t *ticks_counter(const struct tblock *t, int i) { return (int32_t *)((uint8_t *)t + TB_TICKS(i)); }
static inline int64_t ticks_left(const struct tblock *t) {
    int64_t sum = t->ticks_reserve;
    for (int i = 0; i < TICK_COUNTERS; i++) sum += *ticks_counter(t, i);
    return sum;
}
/* Ticks of the thread so far. */
static inline uint64_t ticks_total(const struct tblock *t) { return (uint64_t)(t->tick_limit - ticks_left(t)); }
#define TICKS_DEALT_MOST (1 << 30)
/* Deals n ticks out: most of them to counter i. */
static inline void ticks_deal(struct tblock *t, int64_t n, int i) {
    int32_t dealt = (int32_t)MIN(n, TICKS_DEALT_MOST), part = dealt / (2 * TICK_COUNTERS);
    for (int k = 0; k < TICK_COUNTERS; k++) *ticks_counter(t, k) = part;
    *ticks_counter(t, i) = dealt - (TICK_COUNTERS - 1) * part;
    t->ticks_reserve = n - dealt;
}
/* Counts one tick, whose place is none of translated code. False: the budget is used up. */
static inline bool ticks_take(struct tblock *t) {
    for (int i = 0; i < TICK_COUNTERS; i++)
        if (*ticks_counter(t, i) > 0) return --*ticks_counter(t, i), true;
    if (t->ticks_reserve > 0) return t->ticks_reserve--, true;
    return false;
}
/* The thread leaves the cache at the tick point behind n more ticks. */
static inline void ticks_set_budget(struct tblock *t, uint64_t n) {
    t->tick_limit += (int64_t)n - ticks_left(t);
    ticks_deal(t, (int64_t)n, 0);
}

/* What has happened in the cache, on stderr. */
void engine_report(void);

/* Drops the translation of the code at pc. */
void engine_drop_block(gaddr pc);

/* Runs the thread from t->pc with the registers in t->gpr; never returns. Uses the stack at t->rt_sp. */
void engine_run(struct tblock *t) __attribute__((noreturn));

struct block *translate(gaddr pc, enum entry_kind reason);
/* An entry of kind `kind` for block b, made if need be. NULL: cache full. */
uint8_t *translate_entry(struct block *b, enum entry_kind kind);
/* A piece of code that a return to b's pc may land on, for returns that no translated call made. */
uint8_t *translate_ret_entry(struct block *b);

/* fault.c: guest state from an interrupted cache pc. */
enum fault_where {
    FAULT_AT_BOUNDARY,
    FAULT_INSIDE,
    FAULT_NOT_THE_GUESTS, /* an access of ours failed that the program does not make: its instruction has been done */
    FAULT_NOT_CACHE,
};
struct fault_regs {
    uint64_t gpr[16];
    uint64_t host_pc, rflags;
};
/* Turns host registers at host_pc into guest registers at the start of the guest instruction being executed. */
enum fault_where fault_to_guest(struct tblock *t, const struct fault_regs *regs);
bool fault_at_boundary(uint64_t host_pc);
/* An int3 at host_pc: whether a tick has found its counter used up. If so, the thread is to go on at *to with *rcx, else as it is. */
bool fault_is_tick(struct tblock *t, uint64_t host_pc, uint64_t *to, uint64_t *rcx);
/* The guest instruction that host_pc belongs to; 0: none. */
gaddr fault_guest_pc(uint64_t host_pc);
/* A write to the program's memory at host_pc faulted: whether it clears a word of ours on the stack, at an entry or behind a call. It is
 * no instruction's, so it has to be repeated where it is. */
bool fault_is_own_store(uint64_t host_pc);

extern uint64_t tick_trace;  /* --debug tick-trace=N: a line at the first tick point and every Nth after it */
extern int trace_level;      /* --debug trace=N */
extern bool stats_wanted;    /* --debug stats=1: engine_report() when a process ends */
extern bool loop_is_quick;   /* `loop` takes no longer than other branches; false: it is not used. --debug loop=0|1 */
extern uint64_t single_from; /* --debug single-from=N: blocks from this number on hold one instruction each */

#endif

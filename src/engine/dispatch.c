/* Dispatch: what happens when translated code cannot go on by itself. */
#include <linux/mman.h>

#include "engine/engine.h"
#include "engine/flags.h"
#include "engine/kept.h"
#include "engine/tables.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"

struct engine_host engine_host;
const struct policy *the_policy = &policy_none;

/* enter_exit.S */
extern char rt_exit[], rt_syscall[], rt_special[], rt_ret_miss[], rt_jmp_miss[], rt_call_miss[], rt_call_fail[];
extern char rt_stubs[], rt_stubs_end[], rt_step[];

/* Called by the ways out in enter_exit.S. */
void engine_on_enter(struct tblock *t);
void engine_on_exit(struct tblock *t);
void engine_on_syscall(struct tblock *t);
void engine_on_special(struct tblock *t);
void engine_on_tick_budget(struct tblock *t);
void engine_on_indirect_tick(struct tblock *t);
void engine_on_ret_miss(struct tblock *t);
void engine_on_jmp_miss(struct tblock *t);
void engine_on_call_miss(struct tblock *t);
void engine_on_safepoint(struct tblock *t);

static uint8_t link_heat[4096]; /* by page of kept code, folded */

bool stats_wanted;

/* Not always: threads would wait for each other's count. */
static void count_if_wanted(uint64_t *what) {
    if (unlikely(stats_wanted)) ++*what;
}

void engine_report(void) {
    const struct cache_stats *s = &cache_stats;
    say("stats: blocks %lu, dropped %lu, evictions %lu", s->blocks, s->invalidated, s->evictions);
    say("stats: pages of code written %lu, checked %lu, no longer checked %lu", s->pages_written, s->pages_checked,
        s->pages_worn);
    say("stats: exits %lu, missed returns %lu, jumps %lu, calls %lu", s->exits, s->misses[ENTRY_PLAIN],
        s->misses[ENTRY_JMP_IND], s->misses[ENTRY_CALL_IND]);
}

/* Under the lock: what was found a moment ago may have been invalidated since, and its table entries cleared. */
static void fill_indirect(struct block *b, enum entry_kind kind, uint64_t table, gaddr pc) {
    if (!tables_worth_filling(table, pc)) return;
    lock_take(&cache_lock);
    if (!b->dead && b->entry[kind]) cache_table_set(table, pc, b->entry[kind]);
    lock_drop(&cache_lock);
}

static void fill_return(gaddr pc, uint64_t found) {
    uint64_t table = tables_find_return(pc, found);
    if (!table || !tables_worth_filling(table, pc)) return;
    lock_take(&cache_lock);
    uint8_t *host = cache_find_site(pc).host;
    if (host) cache_table_set(table, pc, host);
    lock_drop(&cache_lock);
}

static struct block *find_or_translate(gaddr pc, enum entry_kind reason) {
    struct block *b = cache_find(pc);
    if (b) return b;
    kept_prepare(pc);
    b = cache_find(pc);
    return b ? b : translate(pc, reason);
}

/* Where to enter the cache. */
struct place {
    uint8_t *host;     /* NULL: nowhere */
    uint8_t break_len; /* see struct block */
};

static struct place top_of(const struct block *b) {
    return b ? (struct place){b->host, b->break_len} : (struct place){0};
}

/* Inside a block rather than at one of its own: signals and ends of budgets find a thread in its hottest loops, and blocks that
 * begin there would cut those loops in pieces. */
static struct place find_or_translate_place(gaddr pc) {
    kept_prepare(pc);
    struct block *b = cache_find(pc) ? NULL : cache_find_around(pc);
    return b ? (struct place){cache_insn_host(b, pc), 0} : top_of(find_or_translate(pc, ENTRY_PLAIN));
}

static void enter_at(struct tblock *t, struct place at) {
    bool skips = t->skip_break;
    t->host_pc = (uint64_t)at.host + (skips ? at.break_len : 0);
    t->skip_break = false;
    if (unlikely(t->trap_flag | t->debug_step)) {
        t->step_host_pc = (uint64_t)at.host + (skips || t->debug_step ? at.break_len : 0);
        t->host_pc = (uint64_t)rt_step;
    }
}

static struct place find_place(struct tblock *t, bool *full) {
    struct place at = top_of(cache_find(t->pc));
    if (at.host) return at;
    lock_take(&cache_lock);
    at = find_or_translate_place(t->pc);
    *full = !at.host && cache_is_full();
    lock_drop(&cache_lock);
    cache_hurry();
    return at;
}

/* Enters the cache at t->pc. False: there is no code, or no room for it (*full). System calls return to the same places again and
 * again: those need no search. */
static bool enter(struct tblock *t, bool *full) {
    uint64_t invalidated = __atomic_load_n(&cache_stats.invalidated, __ATOMIC_ACQUIRE);
    struct recent_entry *r = &t->recent[(t->pc ^ t->pc >> 7 ^ t->pc >> 16) % RECENT_ENTRIES];
    *full = false;
    bool known = r->pc == t->pc && r->invalidated == invalidated && r->host;
    struct place at = known ? (struct place){r->host, r->break_len} : find_place(t, full);
    if (at.host) enter_at(t, at);
    if (!known) *r = (struct recent_entry){t->pc, at.host, invalidated, at.break_len};
    return at.host;
}

/* Chooses where to enter the cache for t->pc. Delivers the fault if there is no code. */
void engine_on_enter(struct tblock *t) {
    for (;;) {
        bool full;
        cache_safepoint(t);
        if (unlikely(t->stepped | t->debug)) {
            if (t->stepped) engine_host.step_trap(t);
            if (t->debug) engine_host.debug(t);
            cache_safepoint(t); /* it may have waited there */
        }
        if (unlikely(t->is_due)) {
            t->is_due = false;
            engine_host.tick_budget(t);
            continue;
        }
        if (enter(t, &full)) return;
        if (full)
            cache_wait_for_room(t);
        else
            engine_host.bad_pc(t);
    }
}

void engine_on_exit(struct tblock *t) {
    count_if_wanted(&cache_stats.exits);
    struct exit *x = (struct exit *)((uint8_t *)t->exit_region + (uint32_t)t->exit_index);
    t->pc = x->target;
    if (x->kind == ENTRY_CALL) { /* the host's return address is on the stack */
        *(uint64_t *)t->gpr[RSP] = 0;
        t->gpr[RSP] += 8;
    }
    bool link = !x->from->is_kept || worth_a_page(&link_heat[((uint64_t)x->rel32 / PAGE_SIZE) % ARRAY_LEN(link_heat)]);
    if (link || !cache_find(x->target)) {
        lock_take(&cache_lock);
        struct block *b = find_or_translate(x->target, x->kind);
        uint8_t *entry = b && link ? translate_entry(b, x->kind) : NULL;
        if (entry) cache_link(x, b, entry);
        lock_drop(&cache_lock);
    }
    engine_on_enter(t);
}

void engine_on_syscall(struct tblock *t) {
    t->stepped = false; /* the kernel swallows the trap of a system call */
    t->own_ss = 0;      /* syscall gives it its usual value */
    cache_idle(t);
    engine_host.syscall(t);
    engine_on_enter(t);
}

void engine_drop_block(gaddr pc) {
    lock_take(&cache_lock);
    struct block *b = cache_find(pc);
    if (b) cache_invalidate(b);
    lock_drop(&cache_lock);
}

/* Goes on in the middle of the instruction's sequence, behind what asked. False: at t->pc, like any other. */
static bool ask_about_store(struct tblock *t) {
    gaddr pc = t->pc;
    uint64_t behind = t->host_pc;
    t->stepped = false;
    if (!engine_host.store(t) || t->pc != pc) return false;
    t->host_pc = behind;
    if (unlikely(t->trap_flag | t->debug_step)) {
        t->step_host_pc = t->host_pc;
        t->host_pc = (uint64_t)rt_step;
    }
    return true;
}

/* Threads that go on at once do so in the block that they are in: a search takes longer than all the rest. */
static void on_break(struct tblock *t) {
    const struct block *b = t->break_block;
    enum break_end end = engine_host.at_break(t);
    if (end != BREAK_DONE) t->stepped = false; /* nothing has been done yet */
    bool is_seen = t->stepped | t->trap_flag | t->debug | t->debug_step | t->is_due;
    if (end == BREAK_ELSEWHERE || !b->broken_len || unlikely(is_seen || b->dead)) {
        t->skip_break |= end == BREAK_PASSED;
        engine_on_enter(t);
        return;
    }
    t->host_pc = (uint64_t)b->host + b->break_len + (end == BREAK_DONE ? b->broken_len : 0);
}

void engine_on_special(struct tblock *t) {
    if ((uint32_t)t->exit_index == SPECIAL_STORE) {
        if (!ask_about_store(t)) engine_on_enter(t);
        return;
    }
    if ((uint32_t)t->exit_index == SPECIAL_BREAK) {
        on_break(t);
        return;
    }
    cache_idle(t);
    if ((uint32_t)t->exit_index == SPECIAL_STALE) {
        t->stepped = false;
        engine_drop_block(t->pc);
    } else if ((uint32_t)t->exit_index == SPECIAL_WORN) {
        t->stepped = false;
        lock_take(&cache_lock);
        engine_host.worn(t->pc);
        lock_drop(&cache_lock);
    } else
        engine_host.special(t, (enum special)(uint32_t)t->exit_index);
    engine_on_enter(t);
}

void engine_on_safepoint(struct tblock *t) {
    engine_host.safepoint(t);
    engine_on_enter(t);
}

#define NO_LIMIT (INT64_MAX / 2) /* room for ticks and tick_limit to move */

uint64_t tick_trace;

static void on_tick_budget(struct tblock *t) {
    if (unlikely(tick_trace)) {
        say("tick point %lu: %lx", ticks_total(t), t->pc);
        ticks_set_budget(t, tick_trace);
    } else if (engine_host.tick_budget) {
        engine_host.tick_budget(t);
    } else {
        ticks_set_budget(t, NO_LIMIT);
    }
    engine_on_enter(t);
}

/* A tick has found its counter used up; its instruction is executed again and counts then. If other counters have something left,
 * the thread goes on, and nobody hears of it. */
static void on_counter_used_up(struct tblock *t, int counter) {
    bool full;
    *ticks_counter(t, counter) = 0;
    t->stepped = false;
    int64_t left = ticks_left(t);
    if (left == 0) {
        on_tick_budget(t);
        return;
    }
    ticks_deal(t, left, counter);
    t->skip_break = true; /* the instruction was begun */
    if (!enter(t, &full)) engine_on_enter(t);
}

void engine_on_tick_budget(struct tblock *t) {
    flags_settle_direct(t);
    on_counter_used_up(t, (int)(uint32_t)t->exit_index);
}

/* The budget is used up where an indirect transfer arrives: back to the transfer. */
void engine_on_indirect_tick(struct tblock *t) {
    struct insn in;
    flags_settle(t, t->s1);
    t->pc = t->jump_pc;
    CHECK(decode_executed(&in, t->pc));
    if (in.cls == INSN_CALL_IND) t->gpr[RSP] += 8;
    if (in.cls == INSN_RET) t->gpr[RSP] -= 8 + (uint16_t)in.imm;
    flags_settle(t, t->pc); /* in front of a linker's stub, which has set them, they are dead */
    on_counter_used_up(t, TICK_INDIRECT);
}

/* An indirect transfer that missed counts here. False: not executed, the thread goes on elsewhere. */
static bool count_indirect(struct tblock *t) {
    if (!the_policy->ticks) return true;
    if (ticks_take(t)) return true;
    engine_on_indirect_tick(t);
    return false;
}

void engine_on_ret_miss(struct tblock *t) {
    uint64_t found = t->s1;
    count_if_wanted(&cache_stats.misses[ENTRY_PLAIN]);
    cache_safepoint(t);
    struct site s = cache_find_site(t->pc);
    if (!s.host) {
        lock_take(&cache_lock);
        struct block *b = find_or_translate(t->pc, ENTRY_PLAIN);
        if (b) {
            s = cache_find_site(t->pc);
            if (!s.host) {
                translate_ret_entry(b);
                s = cache_find_site(t->pc);
            }
        }
        lock_drop(&cache_lock);
    }
    if (!s.host || unlikely(t->stepped | t->trap_flag | t->debug)) {
        engine_on_enter(t);
        return;
    }
    fill_return(t->pc, found);
    t->host_pc = (uint64_t)s.cont;
}

static void on_indirect_miss(struct tblock *t, enum entry_kind kind, uint64_t table) {
    if (!count_indirect(t)) return;
    count_if_wanted(&cache_stats.misses[kind]);
    cache_safepoint(t);
    struct block *b = cache_find(t->pc);
    if (!b || !b->entry[kind]) {
        lock_take(&cache_lock);
        b = find_or_translate(t->pc, kind);
        if (b) translate_entry(b, kind);
        lock_drop(&cache_lock);
    }
    bool found = b && b->entry[kind];
    if (found) fill_indirect(b, kind, table, t->pc);
    if (!found || unlikely(t->stepped | t->trap_flag | t->debug))
        engine_on_enter(t);
    else
        t->host_pc = (uint64_t)b->host;
}

void engine_on_jmp_miss(struct tblock *t) { on_indirect_miss(t, ENTRY_JMP_IND, TABLE_JMP); }

/* A call to an address that cannot be one: the processor refuses it at the call itself. */
static bool refuse_call(struct tblock *t) {
    if (likely((int64_t)(t->pc << 16) >> 16 == (int64_t)t->pc)) return false;
    struct site s = cache_find_site(*(uint64_t *)t->gpr[RSP]);
    gaddr call = s.host ? fault_guest_pc((uint64_t)s.host) : 0;
    if (!call) return false;
    t->stepped = false;
    t->gpr[RSP] += 8;
    t->pc = call;
    engine_host.bad_target(t);
    return true;
}

void engine_on_call_miss(struct tblock *t) {
    if (refuse_call(t))
        engine_on_enter(t);
    else
        on_indirect_miss(t, ENTRY_CALL_IND, TABLE_CALL);
}

void engine_init_tblock(struct tblock *t) {
    t->self = t;
    t->fn_exit = (uint64_t)rt_exit;
    t->fn_syscall = (uint64_t)rt_syscall;
    t->fn_special = (uint64_t)rt_special;
    t->fn_ret_miss = (uint64_t)rt_ret_miss;
    t->fn_jmp_miss = (uint64_t)rt_jmp_miss;
    t->fn_call_miss = (uint64_t)rt_call_miss;
    t->fn_call_fail = (uint64_t)rt_call_fail;
    ticks_set_budget(t, NO_LIMIT);
    t->tick_limit = NO_LIMIT;
    if (unlikely(tick_trace)) ticks_set_budget(t, 0);
}

static void start_stubs(void) {
    if (SYS(mmap, LAYOUT_STUBS, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
            -1, 0) != (long)LAYOUT_STUBS)
        die("no memory for the stubs of the lookup tables");
    memcpy((void *)LAYOUT_STUBS, rt_stubs, (size_t)(rt_stubs_end - rt_stubs));
    SYS(mprotect, LAYOUT_STUBS, PAGE_SIZE, PROT_READ | PROT_EXEC);
}

void engine_start(const struct policy *policy) {
    the_policy = policy;
    cache_start();
    start_stubs();
    tables_start();
}

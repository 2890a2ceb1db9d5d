/* Policies that need no recorder: nothing, tick counting, and exact counts for tests. */
#include "engine/engine.h"

#include "inproc/fmt.h"
#include "inproc/sys.h"

const struct policy policy_none = {.name = "none", .id = 0};

static void ticks_report(struct tblock *t) { say("ticks: %lu", ticks_total(t)); }

const struct policy policy_ticks = {.name = "ticks", .id = 1, .ticks = true, .thread_end = ticks_report};

const struct policy policy_order = {.name = "order", .id = 3, .ticks = true, .intercept = true};

/* *counter += n, without touching flags. */
static void emit_add(struct emitter *e, int counter, int n) {
    if (!n) return;
    emit_store_tb(e, RCX, TB_S0);
    emit_load_tb(e, RCX, counter);
    emit_lea(e, RCX, RCX, n);
    emit_store_tb(e, RCX, counter);
    emit_load_tb(e, RCX, TB_S0);
}

static void count_insn(struct emitter *e, const struct insn *in, const uint8_t *bytes, struct liveness live) {
    emit_add(e, TB_COUNT_INSNS, 1);
    emit_add(e, TB_COUNT_LOADS, (in->load_size != 0) + (in->pop_size != 0));
    emit_add(e, TB_COUNT_STORES, (in->store_size != 0) + (in->push_size != 0));
}

static void count_report(struct tblock *t) {
    say("counts: %lu instructions, %lu loads, %lu stores", t->count_insns, t->count_loads, t->count_stores);
}

const struct policy policy_count = {.name = "count", .id = 2, .before_insn = count_insn, .thread_end = count_report};

static void count_only_insns(struct emitter *e, const struct insn *in, const uint8_t *bytes, struct liveness live) {
    emit_add(e, TB_COUNT_INSNS, 1);
}

const struct policy policy_order_count = {
    .name = "order-count", .id = 4, .ticks = true, .intercept = true, .before_insn = count_only_insns};

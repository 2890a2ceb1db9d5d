#include "engine/build.h"
#include "engine/flags.h"
#include "inproc/fmt.h"
#include "inproc/str.h"

static struct pending_cold *add_cold(struct build *b, int i, int rcx_slot) {
    struct pending_cold *c = &b->cold[b->n_cold++];
    *c = (struct pending_cold){.pc = b->insn[i].pc, .rcx_slot = rcx_slot, .counter = b->tick[i].counter};
    return c;
}

static int counter_of(const struct build *b, int i) { return TB_TICKS + 8 * b->tick[i].counter; }

void emit_tick_rcx(struct build *b, int i, int slot) {
    struct emitter *e = &b->e;
    emit_load_tb(e, RCX, counter_of(b, i));
    add_cold(b, i, slot)->rel8 = emit_jrcxz(e);
    emit_lea(e, RCX, RCX, -1);
    emit_store_tb(e, RCX, counter_of(b, i));
}

static bool flags_are_free(const struct build *b, const struct insn *in) {
    return !b->exact_flags && flags_are_dead(in->pc, in->target);
}

void emit_tick_with_flags_kept(struct build *b, int i) {
    emit_store_tb(&b->e, RCX, TB_S2);
    emit_tick_rcx(b, i, TB_S2);
    emit_load_tb(&b->e, RCX, TB_S2);
}

void emit_tick(struct build *b, int i) {
    if (!flags_are_free(b, &b->insn[i])) {
        emit_tick_with_flags_kept(b, i);
        return;
    }
    emit_sub_tb_1(&b->e, counter_of(b, i));
    add_cold(b, i, -1)->rel32 = emit_jcc_fixed(&b->e, 8 /* s */, NULL);
}

void emit_gap(struct build *b) {
    struct pending_cold *c = b->n_cold ? &b->cold[b->n_cold - 1] : NULL;
    if (!c || !c->rel8) return;
    CHECK(b->e.full || b->e.p - c->rel8 <= 128);
    emit_land_short(&b->e, c->rel8);
    c->rel8 = NULL;
    c->rel32 = emit_jmp_fixed(&b->e, NULL);
}

void emit_gap_here(struct build *b) {
    if (!b->n_cold || !b->cold[b->n_cold - 1].rel8) return;
    uint8_t *skip = emit_jmp_short(&b->e);
    emit_gap(b);
    emit_land_short(&b->e, skip);
}

void emit_tick_and_jump(struct build *b, int i) {
    const struct insn *in = &b->insn[i];
    struct emitter *e = &b->e;
    if (b->tick[i].repeats) {
        emit_tick(b, i);
        emit_gap_here(b);
        return;
    }
    if (flags_are_free(b, in)) {
        emit_sub_tb_1(e, counter_of(b, i));
        build_add_exit(b, emit_jcc(e, 9 /* ns */, NULL), in->target, ENTRY_PLAIN);
        add_cold(b, i, -1)->rel32 = emit_jmp_fixed(e, NULL);
        return;
    }
    emit_tick_with_flags_kept(b, i);
    build_add_exit(b, emit_jmp(e, NULL), in->target, ENTRY_PLAIN);
    emit_gap(b);
}

bool build_finish_colds(struct build *b) {
    uint8_t code[MAX_INSNS * COLD_MOST];
    uint16_t start[MAX_INSNS];
    struct emitter e = {code, code + sizeof code, false};
    for (int i = 0; i < b->n_cold; i++) {
        const struct pending_cold *c = &b->cold[i];
        start[i] = (uint16_t)(e.p - code);
        if (c->rcx_slot >= 0) emit_load_tb(&e, RCX, c->rcx_slot);
        emit_special_exit(&e, c->pc, TB_FN_SAFEPOINT, c->counter);
    }
    uint8_t *place = cache_meta(b->r, (size_t)(e.p - code));
    if (!place) return false;
    memcpy(place, code, (size_t)(e.p - code)); /* nothing in it depends on where it is */
    for (int i = 0; i < b->n_cold; i++) emit_set_rel32(b->cold[i].rel32, place + start[i]);
    return true;
}

bool ticks_at_return(const uint8_t *before, size_t n) {
    for (size_t len = 1; len <= n; len++) {
        struct insn in;
        if (!decode_insn(&in, before + n - len, len, 0)) continue;
        if (in.len == len && in.cls == INSN_PLAIN && in.push_size == 8) return true;
    }
    return false;
}

bool ticks_at(const struct insn *in) {
    if (!the_policy->ticks) return false;
    switch (in->cls) {
    case INSN_JMP:
    case INSN_JCC:
    case INSN_LOOP: return in->target <= in->pc;
    case INSN_CALL:
    case INSN_CALL_IND:
    case INSN_JMP_IND: return true;
    case INSN_RET: return in->imm != 0;
    default: return false;
    }
}

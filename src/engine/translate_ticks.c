#include "engine/build.h"
#include "engine/flags.h"
#include "inproc/fmt.h"
#include "inproc/str.h"

static struct pending_cold *add_cold(struct build *b, gaddr pc, int rcx_slot) {
    struct pending_cold *c = &b->cold[b->n_cold++];
    *c = (struct pending_cold){.pc = pc, .rcx_slot = rcx_slot};
    return c;
}

void emit_tick_rcx(struct build *b, gaddr pc, int slot) {
    struct emitter *e = &b->e;
    emit_load_tb(e, RCX, TB_TICKS);
    add_cold(b, pc, slot)->rel8 = emit_jrcxz(e);
    emit_lea(e, RCX, RCX, -1);
    emit_store_tb(e, RCX, TB_TICKS);
}

static bool flags_are_free(const struct build *b, const struct insn *in) {
    return !b->exact_flags && flags_are_dead(in->pc, in->target);
}

static void emit_tick_with_flags_kept(struct build *b, const struct insn *in) {
    emit_store_tb(&b->e, RCX, TB_S2);
    emit_tick_rcx(b, in->pc, TB_S2);
    emit_load_tb(&b->e, RCX, TB_S2);
}

void emit_tick(struct build *b, const struct insn *in) {
    if (!flags_are_free(b, in)) {
        emit_tick_with_flags_kept(b, in);
        return;
    }
    emit_sub_tb_1(&b->e, TB_TICKS);
    add_cold(b, in->pc, -1)->rel32 = emit_jcc_fixed(&b->e, 8 /* s */, NULL);
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

void emit_tick_and_jump(struct build *b, const struct insn *in) {
    struct emitter *e = &b->e;
    if (flags_are_free(b, in)) {
        emit_sub_tb_1(e, TB_TICKS);
        build_add_exit(b, emit_jcc(e, 9 /* ns */, NULL), in->target, ENTRY_PLAIN);
        add_cold(b, in->pc, -1)->rel32 = emit_jmp_fixed(e, NULL);
        return;
    }
    emit_tick_with_flags_kept(b, in);
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
        emit_special_exit(&e, c->pc, TB_FN_SAFEPOINT, -1);
    }
    uint8_t *place = cache_meta(b->r, (size_t)(e.p - code));
    if (!place) return false;
    memcpy(place, code, (size_t)(e.p - code)); /* nothing in it depends on where it is */
    for (int i = 0; i < b->n_cold; i++) emit_set_rel32(b->cold[i].rel32, place + start[i]);
    return true;
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

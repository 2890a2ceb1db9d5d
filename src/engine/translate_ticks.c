#include "engine/build.h"
#include "engine/flags.h"

static int counter_of(const struct build *b, int i) { return TB_TICKS(b->tick[i].counter); }

void emit_tick_rcx(struct build *b, int i) {
    emit_load_ticks(&b->e, counter_of(b, i));
    emit_trap_if_no_rcx(&b->e);
    emit_lea(&b->e, RCX, RCX, -1);
    emit_store_ticks(&b->e, counter_of(b, i));
}

static bool flags_are_free(const struct build *b, const struct insn *in) {
    return !b->exact_flags && flags_are_dead(in->pc, in->target);
}

void emit_tick_with_flags_kept(struct build *b, int i) {
    emit_store_tb(&b->e, RCX, TB_S2);
    emit_tick_rcx(b, i);
    emit_load_tb(&b->e, RCX, TB_S2);
}

void emit_tick(struct build *b, int i) {
    if (!flags_are_free(b, &b->insn[i])) {
        emit_tick_with_flags_kept(b, i);
        return;
    }
    emit_dec_ticks(&b->e, counter_of(b, i));
    emit_trap_if_negative(&b->e);
}

void emit_tick_and_jump(struct build *b, int i) {
    const struct insn *in = &b->insn[i];
    struct emitter *e = &b->e;
    if (b->tick[i].repeats) {
        emit_tick(b, i);
    } else if (flags_are_free(b, in)) {
        emit_dec_ticks(e, counter_of(b, i));
        build_add_exit(b, emit_jcc(e, 9 /* ns */, NULL), in->target, ENTRY_PLAIN);
        emit_int(e, INT3, 0);
    } else {
        emit_tick_with_flags_kept(b, i);
        build_add_exit(b, emit_jmp(e, NULL), in->target, ENTRY_PLAIN);
    }
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

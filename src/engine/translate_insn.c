#include "engine/build.h"
#include "engine/flags.h"
#include "engine/tables.h"
#include "inproc/fmt.h"

static bool fits32(uint64_t v) { return (int64_t)v == (int32_t)v; }

bool loop_is_quick;

/* rcx -= k; clobbers nothing else. */
static void emit_minus_pc(struct emitter *e, gaddr k) {
    if (fits32(k) && fits32(0 - k)) {
        emit_lea(e, RCX, RCX, (int32_t)(0 - k));
        return;
    }
    emit_store_tb(e, RDX, TB_S2);
    emit_mov_reg_imm(e, RDX, 0 - k);
    emit_lea_sum(e, RCX, RCX, RDX);
    emit_load_tb(e, RDX, TB_S2);
}

uint8_t *emit_expect_pc(struct emitter *e, gaddr k, uint8_t *near, const uint8_t *fail) {
    uint8_t *start = e->p;
    emit_minus_pc(e, k - 1);
    if (loop_is_quick && near && e->p - near <= LOOP_REACH) {
        emit_loop(e, near);
        return near;
    }
    e->p = start;
    emit_minus_pc(e, k);
    uint8_t *ok = emit_jrcxz(e);
    near = e->p;
    emit_jmp_fixed(e, fail);
    emit_land_short(e, ok);
    return near;
}

void emit_site(struct emitter *e, const struct region *r, gaddr k, bool rcx_live) {
    emit_pop_reg(e, RCX);
    e->ret_fail = emit_expect_pc(e, k, e->ret_fail, r->tramp_ret_fail);
    emit_store_stack(e, RCX, -16); /* it is 0 */
    if (rcx_live) emit_load_tb(e, RCX, TB_S0);
}

static void emit_push_pc(struct build *b, gaddr k) {
    if (fits32(k)) {
        emit_push_imm32(&b->e, (int32_t)k);
        return;
    }
    b->literals[b->n_literals++] = (struct pending_literal){emit_push_rip(&b->e), k};
}

void emit_special_exit(struct emitter *e, gaddr pc, int fn, int what) {
    emit_store_tb_u64(e, TB_PC, pc);
    if (what >= 0) emit_store_tb_imm32(e, TB_EXIT_INDEX, (uint32_t)what);
    emit_jmp_tb(e, fn);
}

void build_add_exit(struct build *b, uint8_t *rel32, gaddr target, enum entry_kind kind) {
    b->exits[b->n_exits++] = (struct pending_exit){target, rel32, kind};
}

static int pick_scratch(const struct insn *in, int other_than) {
    static const uint8_t low[] = {RCX, RDX, RSI, RDI, RAX, RBX};
    for (size_t i = 0; i < sizeof low; i++)
        if (low[i] != other_than && !((in->gpr_read | in->gpr_write) & REG_BIT(low[i]))) return low[i];
    return -1;
}

void emit_undo_flags_test(struct emitter *e) {
    emit_restore_flags_rax(e);
    emit_load_tb(e, RAX, TB_S3);
    emit_load_tb(e, RCX, TB_S2);
}

static void emit_plain(struct build *b, int i, const uint8_t *bytes) {
    const struct insn *in = &b->insn[i];
    uint8_t *start = b->e.p;
    if (emit_copy(&b->e, in, bytes)) return;
    b->e.p = start;
    int s = pick_scratch(in, -1);
    CHECK(s >= 0);
    b->map[i].spill = SPILL_SCRATCH;
    b->map[i].scratch = (uint8_t)s;
    emit_store_tb(&b->e, s, TB_S2);
    emit_mov_reg_imm(&b->e, s, in->eip_rel ? (uint32_t)in->target : in->target);
    emit_copy_via(&b->e, in, bytes, s);
    emit_load_tb(&b->e, s, TB_S2);
}

/* String instructions and xlat: the register that points to the operand is moved by the program's gs base meanwhile. */
static void emit_gs_indexed(struct build *b, int i, const uint8_t *bytes, int s) {
    const struct insn *in = &b->insn[i];
    struct emitter *e = &b->e;
    int reg = in->opcode == 0xd7 /* xlat */ ? RBX : RSI;
    b->map[i].spill = SPILL_GS_BASE;
    b->map[i].scratch = (uint8_t)reg;
    emit_store_tb(e, s, TB_S2);
    emit_load_tb(e, s, TB_GUEST_GS);
    emit_lea_sum(e, reg, reg, s);
    emit_load_tb(e, s, TB_S2);
    emit_copy_without_gs(e, in, bytes);
    emit_load_tb(e, s, TB_GUEST_GS);
    emit_not_reg(e, s);
    emit_lea_sum(e, reg, reg, s);
    emit_lea(e, reg, reg, 1);
    emit_load_tb(e, s, TB_S2);
}

static void emit_gs_vsib(struct build *b, int i, const uint8_t *bytes, int s) {
    const struct insn *in = &b->insn[i];
    struct emitter *e = &b->e;
    int base = emit_vsib_base(in, bytes);
    b->map[i].spill = SPILL_SCRATCH;
    b->map[i].scratch = (uint8_t)s;
    emit_store_tb(e, s, TB_S2);
    emit_load_tb(e, s, TB_GUEST_GS);
    if (base >= 0) emit_lea_sum(e, s, base, s);
    emit_copy_vsib_via(e, in, bytes, s);
    emit_load_tb(e, s, TB_S2);
}

/* gs is ours: the address is made from the program's own gs base. */
static void emit_gs_mem(struct build *b, int i, const uint8_t *bytes) {
    const struct insn *in = &b->insn[i];
    struct emitter *e = &b->e;
    int s = pick_scratch(in, -1), r = pick_scratch(in, s);
    if (!in->has_mem && s >= 0 && emit_is_gs_indexed(in, bytes)) {
        emit_gs_indexed(b, i, bytes, s);
        return;
    }
    if (!in->has_mem || s < 0 || r < 0) { /* absolute moves, maskmov: only without a base */
        emit_copy_without_gs(e, in, bytes);
        return;
    }
    if (in->vsib) {
        emit_gs_vsib(b, i, bytes, s);
        return;
    }
    b->map[i].spill = SPILL_SCRATCH;
    b->map[i].scratch = (uint8_t)s;
    emit_store_tb(e, s, TB_S2);
    emit_store_tb(e, r, TB_S3);
    if (!emit_lea_operand(e, in, bytes, s)) emit_mov_reg_imm(e, s, in->target);
    emit_load_tb(e, r, TB_GUEST_GS);
    emit_lea_sum(e, s, s, r);
    emit_load_tb(e, r, TB_S3);
    emit_copy_via(e, in, bytes, s);
    emit_load_tb(e, s, TB_S2);
}

/* rcx and s1 = target of an indirect transfer, then rcx = table index. */
static void emit_target_to_index(struct build *b, const struct insn *in, const uint8_t *bytes, int shift) {
    struct emitter *e = &b->e;
    emit_store_tb(e, RCX, TB_S0);
    uint8_t *start = e->p;
    if (in->seg == 0x65) {
        if (!emit_lea_operand(e, in, bytes, RCX)) emit_mov_reg_imm(e, RCX, in->target);
        emit_store_tb(e, RDX, TB_S2);
        emit_load_tb(e, RDX, TB_GUEST_GS);
        emit_lea_sum(e, RCX, RCX, RDX);
        emit_load_tb(e, RDX, TB_S2);
        emit_load_reg_reg(e, RCX, RCX);
    } else if (!emit_load_operand(e, in, bytes, RCX)) {
        e->p = start;
        emit_mov_reg_imm(e, RCX, in->eip_rel ? (uint32_t)in->target : in->target);
        emit_load_reg_reg(e, RCX, RCX);
    }
    emit_store_tb(e, RCX, TB_S1);
    if (shift) emit_rorx32(e, RCX, RCX, shift);
    emit_movzx16_reg(e, RCX, RCX);
}

static void emit_after_call(struct build *b, int i) {
    const struct insn *in = &b->insn[i];
    gaddr next = in->pc + in->len;
    bool rcx_live = i + 1 >= b->n || (b->live[i + 1].regs & REG_BIT(RCX));
    b->sites[b->n_sites].call_pc = in->pc;
    b->sites[b->n_sites].ret_pc = next;
    b->sites[b->n_sites].site.host = b->e.p;
    emit_site(&b->e, b->r, next, rcx_live);
    b->sites[b->n_sites++].site.cont = b->e.p;
}

/* The processor traps by itself, and says where: at the instruction or behind it. */
static void emit_int_insn(struct build *b, int i) {
    const struct insn *in = &b->insn[i];
    if (in->opcode == 0xcd && in->imm == 0x80) {
        emit_special_exit(&b->e, in->pc, TB_FN_SPECIAL, SPECIAL_INT);
        return;
    }
    b->map[i].spill = SPILL_INT;
    b->map[i].scratch = in->len;
    emit_int(&b->e, in->opcode, (uint8_t)in->imm);
    build_add_exit(b, emit_jmp(&b->e, NULL), in->pc + in->len, ENTRY_PLAIN);
}

static void emit_with_memory(struct build *b, int i, const uint8_t *bytes) {
    if (b->insn[i].seg == 0x65)
        emit_gs_mem(b, i, bytes);
    else
        emit_plain(b, i, bytes);
}

/* What is saved holds the address of the last x87 instruction, which is one of ours. Most save no x87 state; but what is left out
 * depends on the processor's mood, which recordings cannot have, and which state there is on the processor that the program is shown. */
static void emit_xsave(struct build *b, int i, const uint8_t *bytes) {
    const struct insn *in = &b->insn[i];
    struct emitter *e = &b->e;
    uint8_t *start = e->p;
    if (the_policy->intercept) {
        emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_XSAVE);
        return;
    }
    emit_store_tb(e, RCX, TB_S2);
    if (in->seg == 0x65 || !emit_copy(e, in, bytes)) {
        e->p = start;
        emit_with_memory(b, i, bytes);
        emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_FPU_STORE);
        return;
    }
    b->map[i].spill = SPILL_SCRATCH;
    b->map[i].scratch = RCX;
    emit_mov_reg_reg(e, RCX, RAX);
    emit_store_tb(e, RAX, TB_S3);
    emit_save_flags_rax(e);
    emit_test_cl(e, 1 /* x87 */);
    uint8_t *without = emit_jcc_short(e, 4 /* z */);
    emit_undo_flags_test(e);
    emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_FPU_STORE);
    emit_land_short(e, without);
    emit_undo_flags_test(e);
    build_add_exit(b, emit_jmp(e, NULL), in->pc + in->len, ENTRY_PLAIN);
}

void emit_insn(struct build *b, int i) {
    const struct insn *in = &b->insn[i];
    const uint8_t *bytes = b->bytes + (in->pc - b->insn[0].pc);
    struct emitter *e = &b->e;
    gaddr next = in->pc + in->len;
    if (the_policy->before_insn) the_policy->before_insn(e, in, bytes, b->live[i]);
    bool tick = ticks_at(in);
    if (tick && (in->cls == INSN_JMP_IND || in->cls == INSN_CALL_IND || in->cls == INSN_RET)) {
        emit_store_tb_u64(e, TB_JUMP_PC, in->pc);
        if (flags_is_linker_stub(in)) emit_cmp_rsp_rsp(e);
    } else if (tick && in->cls == INSN_CALL) {
        emit_tick(b, i);
    } else if (in->cls == INSN_RET && b->returns_pushed) {
        emit_tick_with_flags_kept(b, i);
    }
    b->map[i].lead = (uint16_t)(e->p - b->host - b->map[i].host_off);
    if (build_is_intercepted(in)) {
        emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_RECORDED);
        return;
    }

    switch (in->cls) {
    case INSN_JMP:
        if (tick)
            emit_tick_and_jump(b, i);
        else
            build_add_exit(b, emit_jmp(e, NULL), in->target, ENTRY_PLAIN);
        break;
    case INSN_JCC:
        if (b->tick[i].repeats) {
            build_add_exit(b, emit_jcc(e, in->cc ^ 1, NULL), next, ENTRY_PLAIN);
            emit_tick_and_jump(b, i);
        } else if (tick) {
            uint8_t *skip = emit_jcc_short(e, in->cc ^ 1);
            emit_tick_and_jump(b, i);
            emit_land_short(e, skip);
        } else {
            build_add_exit(b, emit_jcc(e, in->cc, NULL), in->target, ENTRY_PLAIN);
        }
        break;
    case INSN_LOOP: {
        if (tick) emit_store_tb(e, RCX, TB_S2); /* as it is before the instruction counts it down */
        uint8_t *taken = emit_copy_loop(e, in, bytes);
        uint8_t *skip = emit_jmp_short(e);
        emit_land_short(e, taken);
        if (tick) {
            emit_store_tb(e, RCX, TB_S3);
            emit_tick_rcx(b, i);
            emit_load_tb(e, RCX, TB_S3);
        }
        build_add_exit(b, emit_jmp(e, NULL), in->target, ENTRY_PLAIN);
        emit_land_short(e, skip);
        break;
    }
    case INSN_CALL:
        emit_push_pc(b, next);
        if (tick) b->map[i].spill = SPILL_TICKED;
        if (in->target == next) break; /* only a way to read the pc */
        b->map[i].spill |= SPILL_CALL;
        build_add_exit(b, emit_call(e, NULL), in->target, ENTRY_CALL);
        emit_after_call(b, i);
        break;
    case INSN_CALL_IND:
        b->map[i].spill = SPILL_CALL_IND;
        emit_target_to_index(b, in, bytes, call_index_shift);
        emit_push_pc(b, next);
        emit_call_table(e, TABLE_CALL, RCX);
        emit_after_call(b, i);
        break;
    case INSN_JMP_IND:
        b->map[i].spill = SPILL_RCX;
        emit_target_to_index(b, in, bytes, 0);
        emit_jmp_table(e, TABLE_JMP, RCX);
        break;
    case INSN_RET:
        if (in->imm) {
            b->map[i].spill = SPILL_RCX;
            emit_store_tb(e, RCX, TB_S0);
            emit_pop_reg(e, RCX);
            emit_store_tb(e, RCX, TB_S1);
            emit_movzx16_reg(e, RCX, RCX);
            emit_lea(e, RSP, RSP, (int32_t)(uint16_t)in->imm);
            emit_jmp_table(e, TABLE_JMP, RCX);
            break;
        }
        b->map[i].spill = SPILL_RET | (b->returns_pushed ? SPILL_TICKED : 0);
        emit_store_tb(e, RCX, TB_S0);
        emit_movzx16_stack(e, RCX);
        emit_push_table(e, (uint32_t)table_of_return(in->pc), RCX);
        emit_ret(e);
        break;
    case INSN_SYSCALL: emit_special_exit(e, next, TB_FN_SYSCALL, -1); break;
    case INSN_INT: emit_int_insn(b, i); break;
    case INSN_FAR:
        if (!emit_is_far_transfer(in)) goto copied_at_the_end; /* sysexit and the like: the processor refuses them */
        emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_FAR);
        break;
    case INSN_XBEGIN: emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_XBEGIN); break;
    case INSN_GSBASE: emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_GSBASE); break;
    case INSN_GS_MEM: emit_gs_mem(b, i, bytes); break;
    case INSN_SEGREG: emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_SEGREG); break;
    case INSN_INVALID: emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_INVALID); break;
    case INSN_POPF: emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_POPF); break;
    case INSN_FPU_STORE:
        emit_with_memory(b, i, bytes);
        emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_FPU_STORE);
        break;
    case INSN_XSAVE: emit_xsave(b, i, bytes); break;
    case INSN_PAUSE:
        if (the_policy->intercept) {
            emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_PAUSE);
            break;
        } /* fall through */
    default: emit_plain(b, i, bytes);
    }
    return;
copied_at_the_end:
    emit_plain(b, i, bytes);
    build_add_exit(b, emit_jmp(e, NULL), next, ENTRY_PLAIN);
}

/* Translation: guest instructions -> a block in the code cache.
 *
 * A block is a straight run of guest code: it goes on behind conditional branches and calls and ends at an unconditional
 * transfer, at code that is translated already, or at a limit. Between any two guest instructions all guest registers,
 * flags and memory are in place; only inside the sequence of one instruction may rcx or a scratch register be away.
 *
 * How control moves (K = guest address of the destination, site = host code behind a translated call):
 *
 *   call f        push $K; call f.entry[CALL]; site: ...
 *   entry[CALL]   lea 8(%rsp),%rsp; movq $0,-8(%rsp)        the host's return address is dropped: it only fed the
 *                                                           return predictor
 *   ret           mov %rcx,%gs:s0; movzwl (%rsp),%ecx; push TABLE_RET(,%rcx,8); ret
 *   site          pop %rcx; lea -K(%rcx),%rcx; jrcxz 1f; jmp ret_fail; 1: movq $0,-16(%rsp); mov %gs:s0,%rcx
 *   jmp *x        mov %rcx,%gs:s0; mov x,%rcx; mov %rcx,%gs:s1; movzwl %cx,%ecx; jmp *TABLE_JMP(,%rcx,8)
 *   entry[JMP_IND]   mov %gs:s1,%rcx; lea -K(%rcx),%rcx; jrcxz 1f; jmp jmp_fail; 1: mov %gs:s0,%rcx
 *   call *x       as jmp *x, with push $K in front of call *TABLE_CALL(,%rcx,8); site
 *   entry[CALL_IND]  entry[CALL] then entry[JMP_IND]
 *
 *   tick          subq $1,%gs:ticks; js cold (for a jump: jns destination; jmp cold) where the scan of flags.h finds flags
 *                 dead at the destination; else
 *                 mov %rcx,%gs:s; mov %gs:ticks,%rcx; jrcxz cold; lea -1(%rcx),%rcx; mov %rcx,%gs:ticks; mov %gs:s,%rcx
 *                 in front of direct transfers; of indirect ones at the entry they arrive at, where more is known
 *
 * Nothing else here touches flags: whoever is reached by mistake (two targets share a table slot) must leave no trace. The stack
 * slots that held host addresses are zeroed, so that what a program finds below its stack pointer does not depend on us. */
#include "engine/engine.h"
#include "engine/flags.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"

#define MAX_INSNS 64
#define MAX_EXITS (MAX_INSNS + 2)
#define COLD_MOST 48     /* bytes of one cold part */
#define MAX_CONTINUES 10 /* conditional branches and calls that a block goes on behind */

int trace_level;
uint64_t single_from = UINT64_MAX;

struct pending_exit {
    gaddr target;
    uint8_t *rel32;
    enum entry_kind kind;
};

struct pending_literal {
    uint8_t *rel32;
    uint64_t value;
};

/* Where a tick sequence goes when the budget is used up: among the records, out of the way of code that runs. */
struct pending_cold {
    gaddr pc;
    uint8_t *rel8;  /* of jrcxz, until there is a gap within its reach */
    uint8_t *rel32; /* of the jump to the cold part */
    int rcx_slot;   /* where rcx is; -1: in place */
};

struct build {
    struct emitter e;
    struct region *r;
    uint8_t *host; /* where the instructions start */
    int n;
    gaddr end;                /* guest address behind the last instruction */
    struct block *known_call; /* the block runs into a call that this one holds */
    bool falls_out;           /* the last instruction may go on at `end` */
    bool checked;             /* verify the guest bytes at entry */
    uint8_t break_len;        /* see struct block */
    bool exact_flags;         /* single instructions are to leave exact state */
    int n_exits, n_literals, n_sites, n_cold;
    struct insn insn[MAX_INSNS];
    uint8_t bytes[MAX_INSNS * INSN_MAX_LEN + 16]; /* the guest bytes as decoded: another thread may be writing them */
    struct insn_map map[MAX_INSNS];
    struct liveness live[MAX_INSNS + 1]; /* before each instruction */
    struct pending_exit exits[MAX_EXITS];
    struct pending_literal literals[MAX_INSNS];
    struct pending_cold cold[MAX_INSNS];
    struct {
        gaddr call_pc, ret_pc;
        struct site site;
    } sites[MAX_INSNS];
};

static bool fits32(uint64_t v) { return (int64_t)v == (int32_t)v; }

/* ---- gathering ---- */

static bool is_intercepted(const struct insn *in) {
    switch (in->cls) {
    case INSN_CPUID:
    case INSN_RDTSC:
    case INSN_RDTSCP:
    case INSN_RDRAND:
    case INSN_XGETBV:
    case INSN_RDPID:
    case INSN_LSL: return the_policy->intercept;
    default: return false;
    }
}

static bool ends_block(const struct insn *in) {
    if (is_intercepted(in)) return true;
    switch (in->cls) {
    case INSN_JMP:
    case INSN_JMP_IND:
    case INSN_RET:
    case INSN_SYSCALL:
    case INSN_INT:
    case INSN_FAR:
    case INSN_XBEGIN:
    case INSN_GSBASE:
    case INSN_SEGREG:
    case INSN_XSAVE:
    case INSN_FPU_STORE:
    case INSN_POPF: return true;
    default: return false;
    }
}

static bool goes_on_behind(const struct insn *in) {
    return in->cls == INSN_JCC || in->cls == INSN_CALL || in->cls == INSN_CALL_IND || in->cls == INSN_LOOP;
}

static bool decode_at(struct build *b, struct insn *in, gaddr pc, gaddr at, gaddr code_end) {
    uint8_t *copy = b->bytes + (at - pc);
    size_t avail = MIN(code_end - at, (gaddr)INSN_MAX_LEN);
    memcpy(copy, (const void *)at, avail);
    return decode_insn(in, copy, avail, at);
}

static bool has_break(gaddr pc) { return engine_host.has_break && engine_host.has_break(pc); }

static bool gather(struct build *b, gaddr pc, int limit) {
    struct code_range code;
    if (!engine_host.code_at(pc, &code)) return false;
    int continues = 0, max_continues = code.checked ? 0 : MAX_CONTINUES;
    b->checked = code.checked;
    gaddr at = pc;
    b->falls_out = true;
    for (b->n = 0; b->n < limit; b->n++) {
        struct insn *in = &b->insn[b->n];
        if (b->n > 0) {
            if (cache_find(at) || has_break(at)) break;
            if (PAGE_DOWN(at) > PAGE_DOWN(pc) + PAGE_SIZE) break; /* at most two pages: see struct block */
            if (at >= code.end && cache_kept_region(pc)) break;   /* a file's kept code stays within the file */
            if (at >= code.end && (!engine_host.code_at(at, &code) || code.checked != b->checked)) break;
        }
        if (!decode_at(b, in, pc, at, code.end)) {
            /* it may go on in the next mapping */
            struct code_range more;
            if (code.end - at >= INSN_MAX_LEN || !engine_host.code_at(code.end, &more) ||
                !decode_at(b, in, pc, at, more.end)) {
                in->cls = INSN_INVALID;
                in->pc = at;
                in->len = 1;
            } else if (more.checked && !b->checked) { /* an instruction on two pages: either may change unseen */
                if (b->n > 0) break;
                b->checked = true;
                max_continues = 0;
            }
        }
        if (in->cls == INSN_INVALID && b->n > 0) break;
        if (b->n > 0 && PAGE_DOWN(at + in->len - 1) > PAGE_DOWN(pc) + PAGE_SIZE) break;
        if (b->n > 0 && (in->cls == INSN_CALL || in->cls == INSN_CALL_IND)) {
            b->known_call = cache_find_call(at);
            if (b->known_call) break;
        }
        at += in->len;
        if (in->cls == INSN_INVALID || ends_block(in)) {
            b->n++;
            b->falls_out = false;
            break;
        }
        if ((goes_on_behind(in) && ++continues > max_continues) || (b->checked && in->store_size)) {
            b->n++;
            break;
        }
    }
    b->end = at;
    return true;
}

/* Integer instructions between registers cannot fault, except division. Everything else may: memory, x87, vectors. */
static bool may_fault(const struct insn *in) {
    static const uint8_t safe[] = {0x01, 0x03, 0x09, 0x0b, 0x11, 0x13, 0x19, 0x1b, 0x21, 0x23, 0x29, 0x2b, 0x31, 0x33,
                                   0x39, 0x3b, 0x63, 0x83, 0x81, 0x85, 0x84, 0x89, 0x8b, 0x8d, 0xc1, 0xd1, 0xc7, 0x90};
    if (in->encoding != ENC_LEGACY || in->prefix_len || in->has_mem || in->push_size || in->pop_size) return true;
    if (in->opcode_off != (in->has_rex ? 1 : 0)) return true; /* two-byte opcodes */
    if (in->opcode >= 0xb8 && in->opcode <= 0xbf) return false;
    for (size_t i = 0; i < sizeof safe; i++)
        if (in->opcode == safe[i]) return false;
    return true;
}

static void find_liveness(struct build *b) {
    struct liveness live = {0xffff, FLAGS_ARITH};
    b->live[b->n] = live;
    for (int i = b->n - 1; i >= 0; i--) {
        const struct insn *in = &b->insn[i];
        if (in->cls != INSN_PLAIN || may_fault(in)) { /* a handler sees everything; the other side may need it */
            live = (struct liveness){0xffff, FLAGS_ARITH};
        } else {
            live.regs = (uint16_t)((live.regs & ~in->gpr_kill) | in->gpr_read);
            live.flags = (uint8_t)((live.flags & ~in->flags_kill) | in->flags_read);
        }
        b->live[i] = live;
    }
}

/* ---- pieces ---- */

static void add_exit(struct build *b, uint8_t *rel32, gaddr target, enum entry_kind kind) {
    b->exits[b->n_exits++] = (struct pending_exit){target, rel32, kind};
}

/* rcx holds an address: leaves 0 there if it is K, clobbers nothing else. */
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

static void emit_drop_host_word(struct emitter *e, bool zero) {
    emit_lea(e, RSP, RSP, 8);
    if (zero) emit_zero_stack(e, -8);
}

/* Verifies the target of an indirect transfer in front of a block. */
static void emit_verify_target(struct emitter *e, const struct region *r, const struct block *b, uint8_t *fail) {
    emit_load_tb(e, RCX, TB_S1);
    emit_minus_pc(e, b->pc);
    uint8_t *ok = emit_jrcxz(e);
    emit_jmp(e, fail);
    uint8_t *gap = e->p;
    if (the_policy->ticks && !b->flags_dead) emit_jmp_fixed(e, r->tramp_tick);
    emit_land_short(e, ok);
    if (the_policy->ticks && b->flags_dead) {
        emit_sub_tb_1(e, TB_TICKS);
        emit_jcc_fixed(e, 8 /* s */, r->tramp_tick);
    } else if (the_policy->ticks) {
        emit_load_tb(e, RCX, TB_TICKS);
        emit_jrcxz_back(e, gap);
        emit_lea(e, RCX, RCX, -1);
        emit_store_tb(e, RCX, TB_TICKS);
    }
    if (b->rcx_live || (the_policy->ticks && !b->flags_dead)) emit_load_tb(e, RCX, TB_S0);
}

static void emit_entry(struct emitter *e, const struct region *r, const struct block *b, enum entry_kind kind) {
    if (kind == ENTRY_CALL || kind == ENTRY_CALL_IND)
        emit_drop_host_word(e, kind == ENTRY_CALL_IND || !b->pushes_first);
    if (kind == ENTRY_JMP_IND) emit_verify_target(e, r, b, r->tramp_jmp_fail);
    if (kind == ENTRY_CALL_IND) emit_verify_target(e, r, b, r->tramp_call_fail);
}

static void emit_gap(struct build *b);

/* Behind a call: the place a return lands on. */
static void emit_site(struct emitter *e, const struct region *r, gaddr k, bool rcx_live, struct build *with_gap) {
    emit_pop_reg(e, RCX);
    emit_minus_pc(e, k);
    uint8_t *ok = emit_jrcxz(e);
    emit_jmp(e, r->tramp_ret_fail);
    if (with_gap) emit_gap(with_gap);
    emit_land_short(e, ok);
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

static void emit_special_exit(struct emitter *e, gaddr pc, int fn, int what) {
    emit_store_tb_u64(e, TB_PC, pc);
    if (what >= 0) emit_store_tb_imm32(e, TB_EXIT_INDEX, (uint32_t)what);
    emit_jmp_tb(e, fn);
}

static int pick_scratch(const struct insn *in, int other_than) {
    static const uint8_t low[] = {RCX, RDX, RSI, RDI, RAX, RBX};
    for (size_t i = 0; i < sizeof low; i++)
        if (low[i] != other_than && !((in->gpr_read | in->gpr_write) & REG_BIT(low[i]))) return low[i];
    return -1;
}

/* ---- ticks ---- */

static struct pending_cold *add_cold(struct build *b, gaddr pc, int rcx_slot) {
    struct pending_cold *c = &b->cold[b->n_cold++];
    *c = (struct pending_cold){.pc = pc, .rcx_slot = rcx_slot};
    return c;
}

/* Counts one tick, with rcx in `slot`; what rcx holds then is lost. emit_gap must follow. */
static void emit_tick_rcx(struct build *b, gaddr pc, int slot) {
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

/* In front of a direct call: counts one tick, and leaves the cache at pc when the budget is used up. */
static void emit_tick(struct build *b, const struct insn *in) {
    if (!flags_are_free(b, in)) {
        emit_tick_with_flags_kept(b, in);
        return;
    }
    emit_sub_tb_1(&b->e, TB_TICKS);
    add_cold(b, in->pc, -1)->rel32 = emit_jcc_fixed(&b->e, 8 /* s */, NULL);
}

/* Where nothing runs past: the way from the last jrcxz to the cold part. */
static void emit_gap(struct build *b) {
    struct pending_cold *c = b->n_cold ? &b->cold[b->n_cold - 1] : NULL;
    if (!c || !c->rel8) return;
    CHECK(b->e.full || b->e.p - c->rel8 <= 128);
    emit_land_short(&b->e, c->rel8);
    c->rel8 = NULL;
    c->rel32 = emit_jmp_fixed(&b->e, NULL);
}

/* The same where there is no such place, or none near enough. */
static void emit_gap_here(struct build *b) {
    if (!b->n_cold || !b->cold[b->n_cold - 1].rel8) return;
    uint8_t *skip = emit_jmp_short(&b->e);
    emit_gap(b);
    emit_land_short(&b->e, skip);
}

/* A jump that is taken: the same, and the jump. */
static void emit_tick_and_jump(struct build *b, const struct insn *in) {
    struct emitter *e = &b->e;
    if (flags_are_free(b, in)) {
        emit_sub_tb_1(e, TB_TICKS);
        add_exit(b, emit_jcc(e, 9 /* ns */, NULL), in->target, ENTRY_PLAIN);
        add_cold(b, in->pc, -1)->rel32 = emit_jmp_fixed(e, NULL);
        return;
    }
    emit_tick_with_flags_kept(b, in);
    add_exit(b, emit_jmp(e, NULL), in->target, ENTRY_PLAIN);
    emit_gap(b);
}

/* False: no room. */
static bool finish_colds(struct build *b) {
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

/* A tick is a taken direct transfer to an address not above its own, every call, every indirect jump (ret n is one). */
static bool ticks_at(const struct insn *in) {
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

/* ---- one instruction ---- */

/* Flags and rax, which went to s3, and rcx, which went to s2. */
static void emit_undo_flags_test(struct emitter *e) {
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
static void emit_target_to_index(struct build *b, const struct insn *in, const uint8_t *bytes) {
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
    emit_movzx16_reg(e, RCX, RCX);
}

static void emit_after_call(struct build *b, int i) {
    const struct insn *in = &b->insn[i];
    gaddr next = in->pc + in->len;
    bool rcx_live = i + 1 >= b->n || (b->live[i + 1].regs & REG_BIT(RCX));
    b->sites[b->n_sites].call_pc = in->pc;
    b->sites[b->n_sites].ret_pc = next;
    b->sites[b->n_sites].site.host = b->e.p;
    emit_site(&b->e, b->r, next, rcx_live, b);
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
    add_exit(b, emit_jmp(&b->e, NULL), in->pc + in->len, ENTRY_PLAIN);
}

static void emit_with_memory(struct build *b, int i, const uint8_t *bytes) {
    if (b->insn[i].seg == 0x65)
        emit_gs_mem(b, i, bytes);
    else
        emit_plain(b, i, bytes);
}

/* What is saved holds the address of the last x87 instruction, which is one of ours. Most save no x87 state. */
static void emit_xsave(struct build *b, int i, const uint8_t *bytes) {
    const struct insn *in = &b->insn[i];
    struct emitter *e = &b->e;
    uint8_t *start = e->p;
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
    add_exit(b, emit_jmp(e, NULL), in->pc + in->len, ENTRY_PLAIN);
}

static void emit_insn(struct build *b, int i) {
    const struct insn *in = &b->insn[i];
    const uint8_t *bytes = b->bytes + (in->pc - b->insn[0].pc);
    struct emitter *e = &b->e;
    gaddr next = in->pc + in->len;
    if (the_policy->before_insn) the_policy->before_insn(e, in, bytes, b->live[i]);
    bool tick = ticks_at(in);
    if (tick && (in->cls == INSN_JMP_IND || in->cls == INSN_CALL_IND || in->cls == INSN_RET)) {
        emit_store_tb_u64(e, TB_JUMP_PC, in->pc);
    } else if (tick && in->cls == INSN_CALL) {
        emit_tick(b, in);
    }
    b->map[i].lead = (uint16_t)(e->p - b->host - b->map[i].host_off);
    if (is_intercepted(in)) {
        emit_special_exit(e, in->pc, TB_FN_SPECIAL, SPECIAL_RECORDED);
        return;
    }

    switch (in->cls) {
    case INSN_JMP:
        if (tick)
            emit_tick_and_jump(b, in);
        else
            add_exit(b, emit_jmp(e, NULL), in->target, ENTRY_PLAIN);
        break;
    case INSN_JCC:
        if (tick) {
            uint8_t *skip = emit_jcc_short(e, in->cc ^ 1);
            emit_tick_and_jump(b, in);
            emit_land_short(e, skip);
        } else {
            add_exit(b, emit_jcc(e, in->cc, NULL), in->target, ENTRY_PLAIN);
        }
        break;
    case INSN_LOOP: {
        if (tick) emit_store_tb(e, RCX, TB_S2); /* as it is before the instruction counts it down */
        uint8_t *taken = emit_copy_loop(e, in, bytes);
        uint8_t *skip = emit_jmp_short(e);
        emit_land_short(e, taken);
        if (tick) {
            emit_store_tb(e, RCX, TB_S3);
            emit_tick_rcx(b, in->pc, TB_S2);
            emit_load_tb(e, RCX, TB_S3);
        }
        add_exit(b, emit_jmp(e, NULL), in->target, ENTRY_PLAIN);
        emit_gap(b);
        emit_land_short(e, skip);
        break;
    }
    case INSN_CALL:
        emit_push_pc(b, next);
        if (tick) b->map[i].spill = SPILL_TICKED;
        if (in->target == next) { /* call to the next instruction: only a way to read the pc */
            emit_gap_here(b);
            break;
        }
        b->map[i].spill |= SPILL_CALL;
        add_exit(b, emit_call(e, NULL), in->target, ENTRY_CALL);
        emit_after_call(b, i);
        break;
    case INSN_CALL_IND:
        b->map[i].spill = SPILL_CALL_IND;
        emit_target_to_index(b, in, bytes);
        emit_push_pc(b, next);
        emit_call_table(e, TABLE_CALL, RCX);
        emit_after_call(b, i);
        break;
    case INSN_JMP_IND:
        b->map[i].spill = SPILL_RCX;
        emit_target_to_index(b, in, bytes);
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
        b->map[i].spill = SPILL_RET;
        emit_store_tb(e, RCX, TB_S0);
        emit_movzx16_stack(e, RCX);
        emit_push_table(e, TABLE_RET, RCX);
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
    default: emit_plain(b, i, bytes);
    }
    return;
copied_at_the_end:
    emit_plain(b, i, bytes);
    add_exit(b, emit_jmp(e, NULL), next, ENTRY_PLAIN);
}

/* ---- checked blocks ---- */

/* Compares the guest bytes with what was translated; leaves the cache when they differ. All flags are kept: what is there
 * now may need some that the old code did not. */
static void emit_check(struct build *b, gaddr pc) {
    struct emitter *e = &b->e;
    uint8_t *fail[(MAX_INSNS * INSN_MAX_LEN) / 4 + 4];
    int n_fail = 0;
    size_t len = b->end - pc;
    emit_store_tb(e, RCX, TB_S2);
    emit_store_tb(e, RAX, TB_S3);
    emit_save_flags_rax(e);
    for (size_t at = 0; at < len;) {
        size_t size = len - at >= 8 ? 8 : len - at >= 4 ? 4 : len - at >= 2 ? 2 : 1;
        uint64_t want = 0;
        memcpy(&want, b->bytes + at, size);
        emit_mov_reg_imm(e, RCX, want);
        uint8_t *start = e->p;
        if (!emit_cmp_rip_reg(e, RCX, (int)size, pc + at)) { /* no window was free near the code */
            e->p = start;
            emit_store_tb(e, RDX, TB_S1);
            emit_mov_reg_imm(e, RDX, pc + at);
            emit_cmp_reg_mem(e, RCX, (int)size, RDX);
            emit_load_tb(e, RDX, TB_S1);
        }
        fail[n_fail++] = emit_jcc(e, 5 /* ne */, NULL);
        at += size;
    }
    uint8_t *ok = emit_jmp(e, NULL);
    for (int i = 0; i < n_fail && !e->full; i++) emit_set_rel32(fail[i], e->p);
    emit_undo_flags_test(e);
    emit_special_exit(e, pc, TB_FN_SPECIAL, SPECIAL_STALE);
    if (!e->full) emit_set_rel32(ok, e->p);
    emit_undo_flags_test(e);
}

/* ---- blocks ---- */

static uint8_t *host_of(const struct build *b, const uint8_t *host, gaddr pc) {
    for (int i = 0; i < b->n; i++)
        if (b->insn[i].pc == pc) return (uint8_t *)host + b->map[i].host_off;
    return NULL;
}

static bool finish_exits(struct build *b, struct block *blk) {
    struct exit *x = blk->exits;
    for (int i = 0; i < b->n_exits; i++) {
        struct pending_exit *p = &b->exits[i];
        uint8_t *inside = p->kind == ENTRY_PLAIN ? host_of(b, blk->host, p->target) : NULL;
        if (b->checked && inside != blk->host) inside = NULL; /* past the check only from the top */
        if (inside) {
            emit_set_rel32(p->rel32, inside);
            continue;
        }
        *x = (struct exit){.target = p->target, .rel32 = p->rel32, .from = blk, .kind = (uint8_t)p->kind};
        struct emitter stub = {x->stub_code, x->stub_code + sizeof x->stub_code, false};
        emit_store_tb_imm32(&stub, TB_EXIT_INDEX, (uint32_t)((uint8_t *)x - b->r->base));
        emit_jmp(&stub, b->r->tramp_exit);
        CHECK(!stub.full);
        emit_set_rel32(p->rel32, x->stub_code);
        x++;
    }
    blk->n_exits = (uint16_t)(x - blk->exits);
    for (int i = 0; i < b->n_literals; i++) {
        emit_nops(&b->e, -(uintptr_t)b->e.p & 7);
        if (b->e.end - b->e.p < 8) return false;
        emit_set_rel32(b->literals[i].rel32, b->e.p);
        emit_bytes(&b->e, &b->literals[i].value, 8);
    }
    return !b->e.full;
}

static bool first_is_push(const struct build *b) {
    int i = 0;
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    if (b->n > 1 && b->insn[0].len == 4 && memcmp((void *)b->insn[0].pc, endbr64, 4) == 0) i = 1;
    const struct insn *in = &b->insn[i];
    return in->cls == INSN_PLAIN && in->push_size == 8 && in->opcode >= 0x50 && in->opcode <= 0x57 && in->len <= 2;
}

static void emit_body(struct build *b) {
    for (int i = 0; i < b->n; i++) {
        b->map[i].host_off = (uint16_t)(b->e.p - b->host);
        b->map[i].guest_off = (uint16_t)(b->insn[i].pc - b->insn[0].pc);
        if (i == 0 && has_break(b->insn[0].pc)) {
            emit_special_exit(&b->e, b->insn[0].pc, TB_FN_SPECIAL, SPECIAL_BREAK);
            b->break_len = (uint8_t)(b->e.p - b->host);
        }
        if (i == 0 && b->checked) emit_check(b, b->insn[0].pc);
        emit_insn(b, i);
    }
}

static struct block *build_block(struct build *b, gaddr pc, enum entry_kind reason) {
    struct region *r = b->r;
    uint8_t *meta_mark = r->meta_next;
    struct block *blk = cache_meta(r, sizeof *blk);
    struct insn_map *map = blk ? cache_meta(r, sizeof *map * (size_t)b->n) : NULL;
    if (!map) return NULL;
    memset(blk, 0, sizeof *blk);
    b->e = (struct emitter){
        (uint8_t *)(((uintptr_t)r->code_next + 15) & ~15ull),
        MIN(r->meta_next - sizeof(struct exit) * MAX_EXITS - COLD_MOST * MAX_INSNS, cache_code_end(r)), false};
    emit_nops(&b->e, 0);
    blk->pushes_first = first_is_push(b);
    uint8_t *prefix = b->e.p;
    blk->pc = pc;
    blk->rcx_live = b->live[0].regs & REG_BIT(RCX);
    blk->flags_dead = the_policy->ticks && !b->exact_flags && flags_are_dead(pc, pc);
    if (reason != ENTRY_PLAIN) emit_entry(&b->e, r, blk, reason);
    blk->end = b->end;
    blk->host = b->e.p;
    blk->entry[reason] = prefix;
    blk->entry[ENTRY_PLAIN] = blk->host;
    b->host = blk->host;
    emit_body(b);
    if (b->falls_out) add_exit(b, emit_jmp(&b->e, NULL), b->end, ENTRY_PLAIN);
    blk->host_len = (uint32_t)(b->e.p - blk->host);
    blk->break_len = b->break_len;
    blk->n_insns = (uint16_t)b->n;
    blk->map = map;
    memcpy(map, b->map, sizeof *map * (size_t)b->n);
    blk->exits = cache_meta(r, sizeof(struct exit) * (size_t)b->n_exits);
    if (b->e.full || !blk->exits || !finish_exits(b, blk) || !finish_colds(b)) {
        r->meta_next = meta_mark;
        return NULL;
    }
    return blk;
}

static void trace_block(const struct build *b, const struct block *blk) {
    say("block %lu: guest %lx-%lx host %lx+%x, %d instructions", cache_stats.blocks, blk->pc, blk->end,
        (uint64_t)blk->host, blk->host_len, b->n);
    if (trace_level < 2) return;
    for (int i = 0; i < b->n; i++) {
        char line[128];
        size_t at = 0;
        for (int k = 0; k < b->insn[i].len; k++)
            at += fmt_into(line + at, sizeof line - at, "%02x ", ((uint8_t *)b->insn[i].pc)[k]);
        say("  %lx  %s class %d -> %x", b->insn[i].pc, line, b->insn[i].cls, b->map[i].host_off);
    }
}

/* Called with cache_lock held. */
struct block *translate(gaddr pc, enum entry_kind reason) {
    struct build b; /* about 10 KB: runtime stacks are sized for it */
    b.n_exits = b.n_literals = b.n_sites = b.n_cold = 0;
    b.known_call = NULL;
    b.break_len = 0;
    memset(b.map, 0, sizeof b.map);
    if (!gather(&b, pc, cache_stats.blocks < single_from ? MAX_INSNS : 1)) return NULL;
    b.exact_flags = cache_stats.blocks >= single_from;
    find_liveness(&b);
    b.r = cache_region_for(pc);
    if (!b.r) return NULL; /* cache_is_full */
    struct block *blk = build_block(&b, pc, reason);
    CHECK(blk);
    for (int i = 0; i < b.n_sites; i++) {
        if (!b.checked) cache_add_call(b.sites[i].call_pc, blk);
        cache_add_site(b.sites[i].ret_pc, b.sites[i].site);
    }
    if (unlikely(trace_level)) trace_block(&b, blk);
    cache_commit(b.r, blk, b.e.p);
    for (int i = 0; i < blk->n_exits; i++) {
        struct exit *x = &blk->exits[i];
        struct block *to = cache_find(x->target);
        if (b.known_call && x->target == b.end && x->kind == ENTRY_PLAIN)
            cache_link(x, b.known_call, cache_insn_host(b.known_call, b.end));
        else if (to && to->entry[x->kind])
            cache_link(x, to, to->entry[x->kind]);
    }
    return blk;
}

uint8_t *translate_entry(struct block *b, enum entry_kind kind) {
    if (b->entry[kind]) return b->entry[kind];
    struct region *r = cache_region_for(b->pc);
    if (!r || b->dead) return NULL; /* making room may have evicted it */
    struct emitter e = {r->code_next, cache_code_end(r), false};
    uint8_t *at = e.p;
    emit_entry(&e, r, b, kind);
    emit_jmp_anywhere(&e, b->host);
    r->code_next = e.p;
    b->entry[kind] = at;
    return at;
}

uint8_t *translate_ret_entry(struct block *b) {
    struct region *r = cache_region_for(b->pc);
    if (!r || b->dead) return NULL;
    struct emitter e = {r->code_next, cache_code_end(r), false};
    uint8_t *at = e.p;
    emit_site(&e, r, b->pc, b->rcx_live, NULL);
    uint8_t *cont = e.p;
    emit_jmp_anywhere(&e, b->host);
    r->code_next = e.p;
    cache_add_site(b->pc, (struct site){at, cont});
    return at;
}

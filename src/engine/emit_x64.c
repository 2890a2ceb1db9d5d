#include "engine/emit_x64.h"

#include "inproc/str.h"

#define SEG_GS 0x65
#define REX_W 0x48

static void put(struct emitter *e, uint8_t b) {
    if (e->p < e->end)
        *e->p++ = b;
    else
        e->full = true;
}

static void put32(struct emitter *e, uint32_t v) {
    for (int i = 0; i < 4; i++) put(e, (uint8_t)(v >> (8 * i)));
}

void emit_bytes(struct emitter *e, const void *bytes, size_t n) {
    const uint8_t *b = bytes;
    for (size_t i = 0; i < n; i++) put(e, b[i]);
}

void emit_nops(struct emitter *e, size_t n) {
    static const uint8_t nops[8][8] = {
        {0},
        {0x90},
        {0x66, 0x90},
        {0x0f, 0x1f, 0x00},
        {0x0f, 0x1f, 0x40, 0x00},
        {0x0f, 0x1f, 0x44, 0x00, 0x00},
        {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
        {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
    };
    while (n) {
        size_t k = MIN(n, 7);
        emit_bytes(e, nops[k], k);
        n -= k;
    }
}

static uint8_t rex(int w, int reg, int index, int base) {
    return (uint8_t)(0x40 | w << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3);
}

/* %gs:disp32 as modrm + sib with neither base nor index */
static void put_tb_operand(struct emitter *e, int reg, int off) {
    put(e, (uint8_t)(0x04 | (reg & 7) << 3));
    put(e, 0x25);
    put32(e, (uint32_t)off);
}

void emit_load_tb(struct emitter *e, int reg, int off) {
    put(e, SEG_GS);
    put(e, rex(1, reg, 0, 0));
    put(e, 0x8b);
    put_tb_operand(e, reg, off);
}

void emit_store_tb(struct emitter *e, int reg, int off) {
    put(e, SEG_GS);
    put(e, rex(1, reg, 0, 0));
    put(e, 0x89);
    put_tb_operand(e, reg, off);
}

void emit_store_tb_imm32(struct emitter *e, int off, uint32_t imm) {
    put(e, SEG_GS);
    put(e, 0xc7);
    put_tb_operand(e, 0, off);
    put32(e, imm);
}

void emit_store_tb_simm64(struct emitter *e, int off, int32_t imm) {
    put(e, SEG_GS);
    put(e, REX_W);
    put(e, 0xc7);
    put_tb_operand(e, 0, off);
    put32(e, (uint32_t)imm);
}

void emit_store_tb_u64(struct emitter *e, int off, uint64_t value) {
    if ((int64_t)value == (int32_t)value) {
        emit_store_tb_simm64(e, off, (int32_t)value);
        return;
    }
    emit_store_tb_imm32(e, off, (uint32_t)value);
    emit_store_tb_imm32(e, off + 4, (uint32_t)(value >> 32));
}

void emit_jmp_tb(struct emitter *e, int off) {
    put(e, SEG_GS);
    put(e, 0xff);
    put_tb_operand(e, 4, off);
}

void emit_dec_ticks(struct emitter *e, int off) {
    put(e, SEG_GS);
    put(e, 0xff);
    put_tb_operand(e, 1, off);
}

void emit_load_ticks(struct emitter *e, int off) {
    put(e, SEG_GS);
    put(e, 0x8b);
    put_tb_operand(e, RCX, off);
}

void emit_store_ticks(struct emitter *e, int off) {
    put(e, SEG_GS);
    put(e, 0x89);
    put_tb_operand(e, RCX, off);
}

/* From behind a jump of two bytes to the first byte of the address in front of it. */
#define TO_TRAP ((uint8_t)-6)
_Static_assert((TB_TICKS(0) & 0xff) == 0xcc && (TB_TICKS(3) & 0xff) == 0xcc, "int3");

void emit_trap_if_negative(struct emitter *e) {
    put(e, 0x78); /* js */
    put(e, TO_TRAP);
}

void emit_trap_if_no_rcx(struct emitter *e) {
    put(e, 0xe3); /* jrcxz */
    put(e, TO_TRAP);
}

void emit_mov_reg_reg(struct emitter *e, int to, int from) {
    put(e, rex(1, from, 0, to));
    put(e, 0x89);
    put(e, (uint8_t)(0xc0 | (from & 7) << 3 | (to & 7)));
}

void emit_mov_reg_imm(struct emitter *e, int reg, uint64_t value) {
    if (value <= UINT32_MAX) {
        if (reg >= 8) put(e, rex(0, 0, 0, reg));
        put(e, (uint8_t)(0xb8 | (reg & 7)));
        put32(e, (uint32_t)value);
        return;
    }
    put(e, rex(1, 0, 0, reg));
    put(e, (uint8_t)(0xb8 | (reg & 7)));
    put32(e, (uint32_t)value);
    put32(e, (uint32_t)(value >> 32));
}

void emit_lea(struct emitter *e, int reg, int base, int32_t disp) {
    put(e, rex(1, reg, 0, base));
    put(e, 0x8d);
    bool small = disp == (int8_t)disp;
    put(e, (uint8_t)((small ? 0x40 : 0x80) | (reg & 7) << 3 | (base & 7)));
    if ((base & 7) == RSP) put(e, 0x24);
    if (small)
        put(e, (uint8_t)disp);
    else
        put32(e, (uint32_t)disp);
}

void emit_lea_sum(struct emitter *e, int reg, int base, int index) {
    put(e, rex(1, reg, index, base));
    put(e, 0x8d);
    put(e, (uint8_t)(0x44 | (reg & 7) << 3));
    put(e, (uint8_t)((index & 7) << 3 | (base & 7)));
    put(e, 0);
}

void emit_push_reg(struct emitter *e, int reg) {
    if (reg >= 8) put(e, 0x41);
    put(e, (uint8_t)(0x50 | (reg & 7)));
}

void emit_pop_reg(struct emitter *e, int reg) {
    if (reg >= 8) put(e, 0x41);
    put(e, (uint8_t)(0x58 | (reg & 7)));
}

void emit_push_imm32(struct emitter *e, int32_t imm) {
    put(e, 0x68);
    put32(e, (uint32_t)imm);
}

/* A rel32 that starts `lead` bytes from here must not cross an 8-byte boundary. */
static void align_rel32(struct emitter *e, size_t lead) {
    size_t at = ((uintptr_t)e->p + lead) & 7;
    if (at > 4) emit_nops(e, 8 - at);
}

static uint8_t *put_rel32(struct emitter *e, const void *to) {
    uint8_t *at = e->p;
    put32(e, 0);
    if (to && !e->full) emit_set_rel32(at, to);
    return at;
}

uint8_t *emit_push_rip(struct emitter *e) {
    align_rel32(e, 2);
    put(e, 0xff);
    put(e, 0x35);
    return put_rel32(e, NULL);
}

void emit_load_reg_reg(struct emitter *e, int reg, int base) {
    put(e, rex(1, reg, 0, base));
    put(e, 0x8b);
    put(e, (uint8_t)((reg & 7) << 3 | (base & 7)));
}

void emit_rorx32(struct emitter *e, int to, int from, int by) {
    put(e, 0xc4);
    put(e, (uint8_t)(0x43 | (to < 8 ? 0x80 : 0) | (from < 8 ? 0x20 : 0)));
    put(e, 0x7b);
    put(e, 0xf0);
    put(e, (uint8_t)(0xc0 | (to & 7) << 3 | (from & 7)));
    put(e, (uint8_t)by);
}

void emit_movzx16_reg(struct emitter *e, int to, int from) {
    if (to >= 8 || from >= 8) put(e, rex(0, to, 0, from));
    put(e, 0x0f);
    put(e, 0xb7);
    put(e, (uint8_t)(0xc0 | (to & 7) << 3 | (from & 7)));
}

void emit_load_byte_table(struct emitter *e, int reg, uint32_t table) {
    put(e, 0x0f);
    put(e, 0xb6);
    put(e, (uint8_t)(0x80 | (reg & 7) << 3 | (reg & 7)));
    put32(e, table);
}

uint8_t *emit_lea_rip(struct emitter *e, int reg) {
    put(e, rex(1, reg, 0, 0));
    put(e, 0x8d);
    put(e, (uint8_t)(0x05 | (reg & 7) << 3));
    return put_rel32(e, NULL);
}

void emit_movzx16_stack(struct emitter *e, int to) {
    if (to >= 8) put(e, rex(0, to, 0, 0));
    put(e, 0x0f);
    put(e, 0xb7);
    put(e, (uint8_t)(0x04 | (to & 7) << 3));
    put(e, 0x24);
}

void emit_load_stack(struct emitter *e, int reg, int8_t disp) {
    put(e, rex(1, reg, 0, 0));
    put(e, 0x8b);
    put(e, (uint8_t)(0x44 | (reg & 7) << 3));
    put(e, 0x24);
    put(e, (uint8_t)disp);
}

void emit_store_stack(struct emitter *e, int reg, int8_t disp) {
    put(e, rex(1, reg, 0, 0));
    put(e, 0x89);
    put(e, (uint8_t)(0x44 | (reg & 7) << 3));
    put(e, 0x24);
    put(e, (uint8_t)disp);
}

bool emit_is_store_stack(const uint8_t *code) {
    return (code[0] & ~4) == REX_W && code[1] == 0x89 && (code[2] & ~0x38) == 0x44 && code[3] == 0x24;
}

void emit_zero_stack(struct emitter *e, int8_t disp) {
    put(e, REX_W);
    put(e, 0xc7);
    put(e, 0x44);
    put(e, 0x24);
    put(e, (uint8_t)disp);
    put32(e, 0);
}

/* table(,index,8) with a /digit opcode FF */
static void put_table_op(struct emitter *e, int digit, uint32_t table, int index) {
    if (index >= 8) put(e, rex(0, 0, index, 0));
    put(e, 0xff);
    put(e, (uint8_t)(0x04 | digit << 3));
    put(e, (uint8_t)(0xc5 | (index & 7) << 3));
    put32(e, table);
}

void emit_push_table(struct emitter *e, uint32_t table, int index) { put_table_op(e, 6, table, index); }
void emit_jmp_table(struct emitter *e, uint32_t table, int index) { put_table_op(e, 4, table, index); }
void emit_call_table(struct emitter *e, uint32_t table, int index) { put_table_op(e, 2, table, index); }
void emit_ret(struct emitter *e) { put(e, 0xc3); }

void emit_ud2(struct emitter *e) {
    put(e, 0x0f);
    put(e, 0x0b);
}

void emit_dec_mem(struct emitter *e, int base) {
    put(e, 0xff);
    put(e, (uint8_t)(0x08 | base));
}

void emit_cmp_rsp_rsp(struct emitter *e) {
    put(e, 0x39);
    put(e, 0xe4);
}

void emit_save_flags_rax(struct emitter *e) {
    static const uint8_t lahf_seto[] = {0x9f, 0x0f, 0x90, 0xc0};
    emit_bytes(e, lahf_seto, sizeof lahf_seto);
}

void emit_restore_flags_rax(struct emitter *e) {
    static const uint8_t add_sahf[] = {0x04, 0x7f, 0x9e};
    emit_bytes(e, add_sahf, sizeof add_sahf);
}

uint8_t *emit_jmp(struct emitter *e, const void *to) {
    align_rel32(e, 1);
    put(e, 0xe9);
    return put_rel32(e, to);
}

uint8_t *emit_jcc(struct emitter *e, int cc, const void *to) {
    align_rel32(e, 2);
    put(e, 0x0f);
    put(e, (uint8_t)(0x80 | cc));
    return put_rel32(e, to);
}

uint8_t *emit_call(struct emitter *e, const void *to) {
    align_rel32(e, 1);
    put(e, CALL_REL32);
    return put_rel32(e, to);
}

void emit_jmp_anywhere(struct emitter *e, const void *to) {
    int64_t d = (const uint8_t *)to - (e->p + 16);
    if (d > INT32_MIN / 2 && d < INT32_MAX / 2) {
        emit_jmp(e, to);
        return;
    }
    static const uint8_t jmp_literal[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
    emit_bytes(e, jmp_literal, sizeof jmp_literal);
    emit_bytes(e, &to, sizeof to);
}

void emit_jmp_fixed(struct emitter *e, const void *to) {
    put(e, 0xe9);
    put_rel32(e, to);
}

void emit_set_rel32(uint8_t *rel32, const void *to) {
    int32_t rel = (int32_t)((const uint8_t *)to - (rel32 + 4));
    __atomic_store_n((int32_t *)rel32, rel, __ATOMIC_RELEASE);
}

const uint8_t *emit_get_rel32(const uint8_t *rel32) { return rel32 + 4 + *(const int32_t *)rel32; }

static uint8_t *put_rel8(struct emitter *e, uint8_t opcode) {
    put(e, opcode);
    uint8_t *at = e->p;
    put(e, 0);
    return at;
}

uint8_t *emit_jrcxz(struct emitter *e) { return put_rel8(e, 0xe3); }
uint8_t *emit_jmp_short(struct emitter *e) { return put_rel8(e, 0xeb); }
uint8_t *emit_jcc_short(struct emitter *e, int cc) { return put_rel8(e, (uint8_t)(0x70 | cc)); }

void emit_land_short(struct emitter *e, uint8_t *rel8) {
    if (e->full) return;
    *rel8 = (uint8_t)(e->p - (rel8 + 1));
}

void emit_loop(struct emitter *e, const uint8_t *to) {
    put(e, 0xe2);
    put(e, (uint8_t)(to - (e->p + 1)));
}

bool emit_copy(struct emitter *e, const struct insn *in, const uint8_t *bytes) {
    if (in->eip_rel) return false;
    if (!in->rip_rel) {
        emit_bytes(e, bytes, in->len);
        return true;
    }
    int64_t disp = (int64_t)(in->target - (uint64_t)(e->p + in->len));
    if (disp != (int32_t)disp) return false;
    emit_bytes(e, bytes, in->disp_off);
    put32(e, (uint32_t)disp);
    emit_bytes(e, bytes + in->disp_off + 4, in->len - in->disp_off - 4u);
    return true;
}

void emit_copy_via(struct emitter *e, const struct insn *in, const uint8_t *bytes, int scratch) {
    uint8_t b[INSN_MAX_LEN];
    memcpy(b, bytes, in->len);
    /* the base is a low register and there is no index: clear the bits that extend them (inverted in VEX and EVEX) */
    if (in->encoding == ENC_LEGACY && in->has_rex) b[in->rex_off] &= (uint8_t)~3;
    if (in->encoding == ENC_VEX3 || in->encoding == ENC_XOP || in->encoding == ENC_EVEX) b[in->prefix_len + 1] |= 0x60;
    b[in->modrm_off] = (uint8_t)((in->modrm & 0x38) | scratch);
    for (int i = 0; i <= in->modrm_off; i++)
        if (i >= in->prefix_len || b[i] != SEG_GS) put(e, b[i]);
    size_t rest = in->modrm_off + 1u + (in->sib_off ? 1 : 0) + in->disp_size;
    emit_bytes(e, b + rest, in->len - rest);
}

int emit_vsib_base(const struct insn *in, const uint8_t *bytes) {
    uint8_t low = bytes[in->sib_off] & 7;
    if (low == RBP && in->modrm >> 6 == 0) return -1;
    return low | (~bytes[in->prefix_len + 1] >> 5 & 1) << 3;
}

void emit_copy_vsib_via(struct emitter *e, const struct insn *in, const uint8_t *bytes, int scratch) {
    uint8_t b[INSN_MAX_LEN];
    memcpy(b, bytes, in->len);
    if (emit_vsib_base(in, bytes) < 0) b[in->modrm_off] |= 0x80; /* the four bytes that stood without a base */
    b[in->prefix_len + 1] |= 0x20;                               /* not one of r8 to r15 */
    b[in->sib_off] = (uint8_t)((b[in->sib_off] & ~7) | scratch);
    emit_copy_without_gs(e, in, b);
}

uint8_t *emit_copy_loop(struct emitter *e, const struct insn *in, const uint8_t *bytes) {
    emit_bytes(e, bytes, in->len - 1u);
    uint8_t *at = e->p;
    put(e, 0);
    return at;
}

/* The extension bits X and B of the operand as a legacy REX prefix has them. */
static uint8_t operand_rex_bits(const struct insn *in, const uint8_t *bytes) {
    if (in->encoding == ENC_LEGACY) return in->has_rex ? bytes[in->rex_off] & 3 : 0;
    if (in->encoding == ENC_VEX2) return 0;
    return (uint8_t)~bytes[in->prefix_len + 1] >> 5 & 3;
}

bool emit_lea_operand(struct emitter *e, const struct insn *in, const uint8_t *bytes, int reg) {
    if (in->rip_rel || in->eip_rel) return false;
    for (int i = 0; i < in->prefix_len; i++)
        if (bytes[i] == 0x67) {
            put(e, 0x67);
            break;
        }
    put(e, (uint8_t)(REX_W | (reg >> 3) << 2 | operand_rex_bits(in, bytes)));
    put(e, 0x8d);
    uint8_t mod = in->disp_shift ? 0x80 /* four bytes of displacement */ : in->modrm & 0xc0;
    put(e, (uint8_t)(mod | (in->modrm & 7) | (reg & 7) << 3));
    emit_bytes(e, bytes + in->modrm_off + 1, (in->sib_off ? 1u : 0u) + (in->disp_shift ? 0u : in->disp_size));
    if (in->disp_shift) put32(e, (uint32_t)((int8_t)bytes[in->disp_off] * (1 << in->disp_shift)));
    return true;
}

bool emit_cmp_rip_reg(struct emitter *e, int reg, int size, uint64_t address) {
    if (size == 2) put(e, 0x66);
    put(e, rex(size == 8, reg, 0, 0));
    put(e, size == 1 ? 0x38 : 0x39);
    put(e, (uint8_t)(0x05 | (reg & 7) << 3));
    int64_t disp = (int64_t)(address - (uint64_t)(e->p + 4));
    put32(e, (uint32_t)disp);
    return disp == (int32_t)disp;
}

void emit_cmp_reg_mem(struct emitter *e, int reg, int size, int base) {
    if (size == 2) put(e, 0x66);
    put(e, rex(size == 8, reg, 0, base));
    put(e, size == 1 ? 0x38 : 0x39);
    put(e, (uint8_t)((reg & 7) << 3 | (base & 7)));
}

bool emit_is_cmp_memory(const uint8_t *code, int reg, int *base) {
    if (*code == 0x66) code++;
    if ((code[0] & 0xf0) != 0x40 || (code[1] & ~1) != 0x38 || (code[2] >> 3) != reg) return false;
    *base = (code[2] & 7) == 5 ? -1 : code[2] & 7;
    return true;
}

bool emit_load_operand(struct emitter *e, const struct insn *in, const uint8_t *bytes, int reg) {
    uint8_t old_rex = in->has_rex ? bytes[in->rex_off] : 0;
    if (in->eip_rel) return false;
    if (!in->has_mem) {
        emit_mov_reg_reg(e, reg, (in->modrm & 7) | (old_rex & 1) << 3);
        return true;
    }
    /* prefixes that matter for the operand: fs, address size */
    if (in->seg == 0x64) put(e, 0x64);
    for (int i = 0; i < in->prefix_len; i++)
        if (bytes[i] == 0x67) {
            put(e, 0x67);
            break;
        }
    put(e, (uint8_t)(REX_W | (reg >> 3) << 2 | (old_rex & 3)));
    put(e, 0x8b);
    put(e, (uint8_t)((in->modrm & 0xc7) | (reg & 7) << 3));
    size_t rest = in->len - in->modrm_off - 1u;
    if (!in->rip_rel) {
        emit_bytes(e, bytes + in->modrm_off + 1, rest);
        return true;
    }
    int64_t disp = (int64_t)(in->target - (uint64_t)(e->p + 4));
    put32(e, (uint32_t)disp);
    return disp == (int32_t)disp;
}

void emit_copy_without_gs(struct emitter *e, const struct insn *in, const uint8_t *bytes) {
    for (int i = 0; i < in->len; i++)
        if (i >= in->prefix_len || bytes[i] != SEG_GS) put(e, bytes[i]);
}

bool emit_is_gs_indexed(const struct insn *in, const uint8_t *bytes) {
    if (in->encoding != ENC_LEGACY || in->opcode_off != in->prefix_len + in->has_rex)
        return false; /* two-byte opcodes */
    for (int i = 0; i < in->prefix_len; i++)
        if (bytes[i] == 0x67) return false;
    switch (in->opcode) {
    case 0x6e ... 0x6f:     /* outs */
    case 0xa4 ... 0xa7:     /* movs, cmps */
    case 0xac ... 0xad:     /* lods */
    case 0xd7: return true; /* xlat */
    default: return false;
    }
}

bool emit_is_far_transfer(const struct insn *in) {
    if (in->opcode == 0x34 && in->opcode_off > in->prefix_len + in->has_rex) return true; /* sysenter */
    if (in->opcode_off != in->prefix_len + in->has_rex) return false;
    return in->opcode == 0xff || in->opcode == 0xca || in->opcode == 0xcb || in->opcode == 0xcf;
}

void emit_not_reg(struct emitter *e, int reg) {
    put(e, rex(1, 0, 0, reg));
    put(e, 0xf7);
    put(e, (uint8_t)(0xd0 | (reg & 7)));
}

void emit_test_cl(struct emitter *e, uint8_t imm) {
    put(e, 0xf6);
    put(e, 0xc1);
    put(e, imm);
}

void emit_int(struct emitter *e, uint8_t opcode, uint8_t imm) {
    put(e, opcode);
    if (opcode == 0xcd) put(e, imm);
}

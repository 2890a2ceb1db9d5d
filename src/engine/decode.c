/* Decoding with Zydis. The only runtime file that names Zydis.
 *
 * Zydis says what an instruction does; this file turns that into struct insn, and corrects it where hardware gives fewer
 * guarantees than Zydis' tables suggest (see may_not_write() and flag_effects()). */
#include "engine/decode.h"

#include <Zydis/Zydis.h>

#define ALL_GPRS 0xffff
#define ALL_FLAGS (FLAGS_ARITH | FLAG_DF)

struct parts {
    ZydisDecodedInstruction zi;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static bool between(unsigned v, unsigned lo, unsigned hi) { return v >= lo && v <= hi; }

/* The number of the general purpose register that `r` is or is part of, and its width in bits; -1 for any other. */
static int gpr_number(ZydisRegister r, int *width) {
    if (between(r, ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_R15)) {
        *width = 64;
        return (int)(r - ZYDIS_REGISTER_RAX);
    }
    if (between(r, ZYDIS_REGISTER_EAX, ZYDIS_REGISTER_R15D)) {
        *width = 32;
        return (int)(r - ZYDIS_REGISTER_EAX);
    }
    if (between(r, ZYDIS_REGISTER_AX, ZYDIS_REGISTER_R15W)) {
        *width = 16;
        return (int)(r - ZYDIS_REGISTER_AX);
    }
    *width = 8;
    if (between(r, ZYDIS_REGISTER_AL, ZYDIS_REGISTER_BL)) return (int)(r - ZYDIS_REGISTER_AL);
    if (between(r, ZYDIS_REGISTER_AH, ZYDIS_REGISTER_BH)) return (int)(r - ZYDIS_REGISTER_AH);
    if (between(r, ZYDIS_REGISTER_SPL, ZYDIS_REGISTER_R15B)) return 4 + (int)(r - ZYDIS_REGISTER_SPL);
    *width = 0;
    return -1;
}

static void read_register(struct insn *in, ZydisRegister r) {
    int width, n = gpr_number(r, &width);
    if (n >= 0) in->gpr_read |= REG_BIT(n);
}

/* Class */

static bool is_jcc(const ZydisDecodedInstruction *zi) {
    if (zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) return false;
    return (zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && zi->opcode >> 4 == 7) ||
           (zi->opcode_map == ZYDIS_OPCODE_MAP_0F && zi->opcode >> 4 == 8);
}

static bool is_string(const ZydisDecodedInstruction *zi) {
    return zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
           (between(zi->opcode, 0x6c, 0x6f) || between(zi->opcode, 0xa4, 0xa7) || between(zi->opcode, 0xaa, 0xaf));
}

static enum insn_class class_of_segment_access(const struct parts *p) {
    for (int i = 0; i < p->zi.operand_count; i++) {
        const ZydisDecodedOperand *op = &p->op[i];
        if (op->type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        if (op->reg.value == ZYDIS_REGISTER_GS || op->reg.value == ZYDIS_REGISTER_SS) return INSN_SEGREG;
    }
    return INSN_PLAIN;
}

static enum insn_class class_of(const struct parts *p) {
    const ZydisDecodedInstruction *zi = &p->zi;
    if (is_jcc(zi)) return INSN_JCC;
    if (zi->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return INSN_FAR;
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_JMP: return zi->raw.imm[0].is_relative ? INSN_JMP : INSN_JMP_IND;
    case ZYDIS_MNEMONIC_CALL: return zi->raw.imm[0].is_relative ? INSN_CALL : INSN_CALL_IND;
    case ZYDIS_MNEMONIC_RET: return between(zi->opcode, 0xca, 0xcb) ? INSN_FAR : INSN_RET;
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ: return INSN_LOOP;
    case ZYDIS_MNEMONIC_SYSCALL: return INSN_SYSCALL;
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_INTO: return INSN_INT;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_UIRET:
    case ZYDIS_MNEMONIC_ENCLU: return INSN_FAR;
    case ZYDIS_MNEMONIC_CPUID: return INSN_CPUID;
    case ZYDIS_MNEMONIC_RDTSC: return INSN_RDTSC;
    case ZYDIS_MNEMONIC_RDTSCP: return INSN_RDTSCP;
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED: return INSN_RDRAND;
    case ZYDIS_MNEMONIC_XGETBV: return INSN_XGETBV;
    case ZYDIS_MNEMONIC_RDPID: return INSN_RDPID;
    case ZYDIS_MNEMONIC_RDPRU: return INSN_RDPRU;
    case ZYDIS_MNEMONIC_LSL: return INSN_LSL;
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64:
    case ZYDIS_MNEMONIC_XSAVES:
    case ZYDIS_MNEMONIC_XSAVES64: return INSN_XSAVE;
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64: return INSN_FPU_STORE;
    case ZYDIS_MNEMONIC_XBEGIN: return INSN_XBEGIN;
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFD:
    case ZYDIS_MNEMONIC_PUSHFQ: return INSN_PUSHF;
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ: return INSN_POPF;
    case ZYDIS_MNEMONIC_RDGSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE: return INSN_GSBASE;
    case ZYDIS_MNEMONIC_SWAPGS: return INSN_PLAIN;
    case ZYDIS_MNEMONIC_PAUSE: return zi->length == 2 ? INSN_PAUSE : INSN_PLAIN;
    default: return class_of_segment_access(p);
    }
}

/* Layout */

static enum insn_encoding encoding_of(const ZydisDecodedInstruction *zi) {
    switch (zi->encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_VEX: return zi->raw.vex.size == 2 ? ENC_VEX2 : ENC_VEX3;
    case ZYDIS_INSTRUCTION_ENCODING_EVEX: return ENC_EVEX;
    case ZYDIS_INSTRUCTION_ENCODING_XOP: return ENC_XOP;
    case ZYDIS_INSTRUCTION_ENCODING_3DNOW: return ENC_3DNOW;
    default: return ENC_LEGACY;
    }
}

/* prefix_count counts REX as well, so it is where the escape, the opcode or the VEX/EVEX/XOP byte stands. */
static void fill_opcode_place(struct insn *in, const ZydisDecodedInstruction *zi) {
    uint8_t at = zi->raw.prefix_count;
    in->prefix_len = at;
    if (zi->attributes & ZYDIS_ATTRIB_HAS_REX) {
        in->has_rex = true;
        in->rex_off = zi->raw.rex.offset;
        in->prefix_len = in->rex_off;
    }
    switch (in->encoding) {
    case ENC_VEX2: in->opcode_off = at + 2; break;
    case ENC_VEX3:
    case ENC_XOP: in->opcode_off = at + 3; break;
    case ENC_EVEX: in->opcode_off = at + 4; break;
    case ENC_3DNOW: in->opcode_off = zi->length - 1; break;
    default:
        in->opcode_off = at + (zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? 0
                               : zi->opcode_map == ZYDIS_OPCODE_MAP_0F    ? 1
                                                                          : 2);
    }
}

static int64_t sign_extended(uint64_t v, unsigned bits) {
    return bits == 0 || bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static void fill_layout(struct insn *in, const ZydisDecodedInstruction *zi, const uint8_t *bytes) {
    in->len = zi->length;
    in->encoding = encoding_of(zi);
    fill_opcode_place(in, zi);
    in->opcode = bytes[in->opcode_off];
    if (zi->attributes & ZYDIS_ATTRIB_HAS_MODRM) {
        in->modrm_off = zi->raw.modrm.offset;
        in->modrm = bytes[in->modrm_off];
    }
    in->sib_off = zi->attributes & ZYDIS_ATTRIB_HAS_SIB ? zi->raw.sib.offset : 0;
    if (zi->raw.disp.size) {
        in->disp_off = zi->raw.disp.offset;
        in->disp_size = zi->raw.disp.size / 8;
    }
    if (zi->raw.imm[0].size) {
        in->imm_off = zi->raw.imm[0].offset;
        in->imm_size = zi->raw.imm[0].size / 8;
        in->imm = sign_extended(zi->raw.imm[0].value.u, zi->raw.imm[0].size);
    }
}

/* Counts and vectors are unsigned; branches get their destination. */
static void fill_immediate_meaning(struct insn *in, const ZydisDecodedInstruction *zi) {
    if (in->cls == INSN_RET || in->cls == INSN_INT || in->cls == INSN_FAR || zi->mnemonic == ZYDIS_MNEMONIC_ENTER)
        in->imm &= in->imm_size == 1 ? 0xff : 0xffff;
    if (zi->mnemonic == ZYDIS_MNEMONIC_INT3) in->imm = 3;
    if (zi->mnemonic == ZYDIS_MNEMONIC_INT1) in->imm = 1;
    if (zi->mnemonic == ZYDIS_MNEMONIC_INTO) in->imm = 4;
    if (zi->raw.imm[0].is_relative) in->target = in->pc + in->len + (uint64_t)in->imm;
    if (in->cls == INSN_JCC) in->cc = in->opcode & 15;
}

/* Operands */

/* Register results that hardware leaves alone in some cases that Zydis does not call conditional: bsf and bsr of zero (tzcnt
 * and lzcnt are these on a CPU without them), rdssp without a shadow stack, what the kernel emulates with 16 bits only (sldt,
 * str, smsw under UMIP), and what a transaction's abort undoes. */
static bool may_not_write(const struct insn *in, const ZydisDecodedInstruction *zi) {
    if (in->rep) return true;
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_TZCNT:
    case ZYDIS_MNEMONIC_LZCNT:
    case ZYDIS_MNEMONIC_RDSSPD:
    case ZYDIS_MNEMONIC_RDSSPQ:
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_STR:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XABORT: return true;
    default: return zi->meta.category == ZYDIS_CATEGORY_CMOV || zi->meta.category == ZYDIS_CATEGORY_PADLOCK;
    }
}

static bool is_nop(const ZydisDecodedInstruction *zi) {
    return zi->meta.category == ZYDIS_CATEGORY_NOP || zi->meta.category == ZYDIS_CATEGORY_WIDENOP;
}

static void register_operand(struct insn *in, const struct parts *p, const ZydisDecodedOperand *op) {
    int width, n = gpr_number(op->reg.value, &width);
    if (n < 0 || is_nop(&p->zi)) return;
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) in->gpr_read |= REG_BIT(n);
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) in->gpr_write |= REG_BIT(n);
    bool certain = (op->actions & ZYDIS_OPERAND_ACTION_WRITE) && !may_not_write(in, &p->zi);
    if (certain && width >= 32) in->gpr_kill |= REG_BIT(n);
}

static bool is_stack_pointer(ZydisRegister r) { return r == ZYDIS_REGISTER_RSP || r == ZYDIS_REGISTER_ESP; }

static bool touches_memory(const struct parts *p, const ZydisDecodedOperand *op) {
    if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN) return false;
    if (op->actions == 0 || is_nop(&p->zi)) return false;
    return p->zi.meta.category != ZYDIS_CATEGORY_PREFETCH && p->zi.meta.category != ZYDIS_CATEGORY_PREFETCHWT1 &&
           p->zi.meta.category != ZYDIS_CATEGORY_CLDEMOTE;
}

/* Lanes that the mask leaves out may be on pages that are not there. */
static bool is_masked(const ZydisDecodedInstruction *zi) {
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ: return true;
    default: return zi->avx.mask.mode > ZYDIS_MASK_MODE_DISABLED;
    }
}

/* Vector addresses name many places; maskmovdqu, movdir64b and the like go through a register of their own; bt and its kin
 * with a register for the bit number reach beyond the named operand. */
static bool place_unknown(const struct insn *in, const struct parts *p, const ZydisDecodedOperand *op) {
    const ZydisDecodedInstruction *zi = &p->zi;
    if (op->size == 0 || op->mem.type == ZYDIS_MEMOP_TYPE_VSIB || op->mem.type == ZYDIS_MEMOP_TYPE_MIB) return true;
    if (op->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM && in->modrm_off && !is_stack_pointer(op->mem.base))
        return true;
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC: return zi->raw.imm[0].size == 0;
    default:
        return zi->meta.category == ZYDIS_CATEGORY_XSAVE || zi->meta.category == ZYDIS_CATEGORY_XSAVEOPT ||
               is_masked(zi);
    }
}

static void memory_operand(struct insn *in, const struct parts *p, const ZydisDecodedOperand *op) {
    read_register(in, op->mem.base);
    read_register(in, op->mem.index);
    if (op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM) {
        in->has_mem = true;
        in->vsib = op->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
        in->rip_rel = op->mem.base == ZYDIS_REGISTER_RIP;
        in->eip_rel = op->mem.base == ZYDIS_REGISTER_EIP;
        if (in->rip_rel || in->eip_rel) in->target = in->pc + in->len + (uint64_t)p->zi.raw.disp.value;
        if (in->eip_rel) in->target = (uint32_t)in->target;
        if (in->disp_size == 1 && p->zi.raw.disp.value)
            in->disp_shift = (uint8_t)__builtin_ctzl((uint64_t)(op->mem.disp.value / p->zi.raw.disp.value));
    }
    if (!touches_memory(p, op)) return;
    if (op->mem.segment == ZYDIS_REGISTER_FS) in->seg = 0x64;
    if (op->mem.segment == ZYDIS_REGISTER_GS) in->seg = 0x65;

    bool stack = op->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM && is_stack_pointer(op->mem.base);
    uint16_t size = place_unknown(in, p, op) ? MEM_SIZE_UNKNOWN : op->size / 8;
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) *(stack ? &in->pop_size : &in->load_size) = size;
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) *(stack ? &in->push_size : &in->store_size) = size;
}

static bool has_prefix(const ZydisDecodedInstruction *zi, uint8_t byte) {
    for (int i = 0; i < zi->raw.prefix_count; i++)
        if (zi->raw.prefixes[i].value == byte) return true;
    return false;
}

/* What Zydis' operands leave out. */
static void fix_operands(struct insn *in, const ZydisDecodedInstruction *zi) {
    if (is_string(zi)) { /* cmps, scas, ins and outs advance their pointers too */
        uint16_t pointers = in->gpr_read & (REG_BIT(6) | REG_BIT(7));
        in->gpr_write |= pointers;
        if (!in->rep) in->gpr_kill |= pointers;
    }
    if (in->rep) { /* f2 repeats movs, stos and lods as well */
        in->gpr_read |= REG_BIT(1);
        in->gpr_write |= REG_BIT(1);
    }
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_PAUSE: /* f3 49 90 exchanges: REX.B wins over f3 */
        if (zi->attributes & ZYDIS_ATTRIB_HAS_REX && zi->raw.rex.B) {
            in->gpr_read |= REG_BIT(0) | REG_BIT(8);
            in->gpr_write |= REG_BIT(0) | REG_BIT(8);
        }
        break;
    case ZYDIS_MNEMONIC_XLAT: in->gpr_read |= REG_BIT(0); break;
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_CLFLUSHOPT:
    case ZYDIS_MNEMONIC_CLWB: in->load_size = 1; break; /* of the whole line, only this byte has to be mapped */
    case ZYDIS_MNEMONIC_CLZERO: in->store_size = MEM_SIZE_UNKNOWN; break;
    case ZYDIS_MNEMONIC_LEAVE:
        in->pop_size = in->load_size;
        in->load_size = 0;
        break;
    case ZYDIS_MNEMONIC_ENTER: {
        unsigned level = zi->raw.imm[1].value.u & 31;
        in->push_size = (uint16_t)(in->push_size * (1 + level));
        if (level > 1) in->load_size = MEM_SIZE_UNKNOWN;
        break;
    }
    default: break;
    }
}

static void fill_operands(struct insn *in, const struct parts *p) {
    const ZydisDecodedInstruction *zi = &p->zi;
    in->rep = is_string(zi) && (has_prefix(zi, 0xf2) || has_prefix(zi, 0xf3));
    for (int i = 0; i < zi->operand_count; i++) {
        if (p->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER) register_operand(in, p, &p->op[i]);
        if (p->op[i].type == ZYDIS_OPERAND_TYPE_MEMORY) memory_operand(in, p, &p->op[i]);
    }
    fix_operands(in, zi);
    in->lock = (zi->attributes & ZYDIS_ATTRIB_HAS_LOCK) || (zi->mnemonic == ZYDIS_MNEMONIC_XCHG && in->has_mem);
}

/* Flags */

static uint8_t flag_set(ZydisAccessedFlagsMask m) {
    return (uint8_t)((m & ZYDIS_CPUFLAG_CF ? FLAG_CF : 0) | (m & ZYDIS_CPUFLAG_PF ? FLAG_PF : 0) |
                     (m & ZYDIS_CPUFLAG_AF ? FLAG_AF : 0) | (m & ZYDIS_CPUFLAG_ZF ? FLAG_ZF : 0) |
                     (m & ZYDIS_CPUFLAG_SF ? FLAG_SF : 0) | (m & ZYDIS_CPUFLAG_OF ? FLAG_OF : 0) |
                     (m & ZYDIS_CPUFLAG_DF ? FLAG_DF : 0));
}

/* Shifts and rotates whose count may be zero after masking: then no flag changes. Rotates through carry of 8 and 16 bits take
 * the count modulo 9 and 17. */
static bool count_may_be_zero(const struct insn *in, const ZydisDecodedInstruction *zi) {
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_RCL:
    case ZYDIS_MNEMONIC_RCR:
        if (in->imm_size && zi->operand_width < 32) return true;
        break;
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD: break;
    default: return false;
    }
    if (in->imm_size) return (in->imm & (zi->operand_width == 64 ? 63 : 31)) == 0;
    return !between(in->opcode, 0xd0, 0xd1); /* by one, or by cl */
}

/* ptest does, and so do its VEX forms, which Zydis does not know. */
static bool clears_other_flags(const ZydisDecodedInstruction *zi) {
    return zi->mnemonic == ZYDIS_MNEMONIC_VPTEST || zi->mnemonic == ZYDIS_MNEMONIC_VTESTPS ||
           zi->mnemonic == ZYDIS_MNEMONIC_VTESTPD;
}

static void flag_effects(struct insn *in, const ZydisDecodedInstruction *zi) {
    if (!zi->cpu_flags) return;
    in->flags_read = flag_set(zi->cpu_flags->tested);
    in->flags_write =
        flag_set(zi->cpu_flags->modified | zi->cpu_flags->set_0 | zi->cpu_flags->set_1 | zi->cpu_flags->undefined);
    in->flags_kill = in->rep || count_may_be_zero(in, zi) ? 0 : in->flags_write;
    if (between(in->opcode, 0xdb, 0xdf) && in->encoding == ENC_LEGACY && zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
        in->flags_kill &= FLAG_CF | FLAG_PF | FLAG_ZF; /* fcomi: not all manuals say that the others are cleared */
    if (clears_other_flags(zi)) in->flags_write = in->flags_kill = FLAGS_ARITH;
}

/* What leaves the block for the kernel or a hypervisor, or may come back to this very state: everything is read, nothing
 * killed. */
static void fill_everything_read(struct insn *in, const ZydisDecodedInstruction *zi) {
    switch (in->cls) {
    case INSN_SYSCALL:
        in->gpr_write = REG_BIT(0) | REG_BIT(1) | REG_BIT(11);
        in->flags_write = ALL_FLAGS;
        break;
    case INSN_INT:
    case INSN_FAR:
        in->gpr_write = ALL_GPRS;
        in->flags_write = ALL_FLAGS;
        break;
    case INSN_XBEGIN: in->gpr_write |= REG_BIT(0); break;
    default:
        switch (zi->mnemonic) {
        case ZYDIS_MNEMONIC_XABORT:
        case ZYDIS_MNEMONIC_XEND: break;
        case ZYDIS_MNEMONIC_VMCALL: /* a hypervisor answers, even to user code */
        case ZYDIS_MNEMONIC_VMMCALL: in->gpr_write = ALL_GPRS; break;
        default: return;
        }
    }
    in->gpr_read = ALL_GPRS;
    in->flags_read = ALL_FLAGS;
    in->gpr_kill = 0;
    in->flags_kill = 0;
}

/* Not ZydisDecoderDecodeFull: it clears all ten operands, which takes as long as the decoding. */
static bool ask_zydis_for(struct parts *p, const uint8_t *bytes, size_t avail) {
    ZydisDecoder decoder;
    ZydisDecoderContext context;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    /* Linux enables MPX no longer: its instructions are nops, its prefix means nothing. */
    ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
    return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, bytes, avail, &p->zi)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder, &context, &p->zi, p->op, p->zi.operand_count));
}

bool decode_insn_zydis(struct insn *in, const uint8_t *bytes, size_t avail, gaddr pc) {
    struct parts p;
    *in = (struct insn){.pc = pc, .cls = INSN_INVALID};
    if (!ask_zydis_for(&p, bytes, MIN(avail, (size_t)INSN_MAX_LEN))) return false;

    fill_layout(in, &p.zi, bytes);
    in->cls = class_of(&p);
    fill_immediate_meaning(in, &p.zi);
    fill_operands(in, &p);
    flag_effects(in, &p.zi);
    fill_everything_read(in, &p.zi);
    if (in->cls == INSN_PLAIN && in->seg == 0x65) in->cls = INSN_GS_MEM;
    return true;
}

enum decode_failure decode_failure(const uint8_t *bytes, size_t avail) {
    ZydisDecoder decoder;
    ZydisDecoderContext context;
    ZydisDecodedInstruction zi;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    switch (ZydisDecoderDecodeInstruction(&decoder, &context, bytes, MIN(avail, (size_t)INSN_MAX_LEN), &zi)) {
    case ZYDIS_STATUS_NO_MORE_DATA: return avail >= INSN_MAX_LEN ? DECODE_TOO_LONG : DECODE_CUT_OFF;
    case ZYDIS_STATUS_INSTRUCTION_TOO_LONG: return DECODE_TOO_LONG;
    default: return DECODE_UNDEFINED;
    }
}

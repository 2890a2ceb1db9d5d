/* Decoding by table: what the generator (tools/gen_decode.c) and the decoder (decode_table.c) have in common.
 *
 * scan_opcode() finds the opcode and the place in the table that it stands for; the table gives a descriptor;
 * fill_from_desc() makes a struct insn of it. Both give up (false) on anything unusual, and Zydis is asked instead.
 * The generator runs the same two functions against Zydis before it lets a descriptor into the table. */
#ifndef REPRISE_DECODE_DESC_H
#define REPRISE_DECODE_DESC_H

#include "engine/decode.h"

/* What may be read behind the first byte, for loads wider than the bytes they are for. */
#define DECODE_WINDOW 24

/* How an instruction uses a register that one of its fields names. */
enum {
    ROLE_READ = 1,
    ROLE_WRITE = 2,
    ROLE_KILL = 4,
    ROLE_BYTE = 8, /* 4..7 without REX are ah..bh */
};

enum {
    DESC_MODRM = 1,
    DESC_MEM = 2,       /* modrm is memory */
    DESC_MOFFS = 4,     /* an address of 8 bytes instead of modrm */
    DESC_SEGMENT = 8,   /* memory is touched: a segment prefix counts */
    DESC_LOCKABLE = 16, /* a lock prefix is allowed */
    DESC_BRANCH = 32,   /* the immediate is relative */
    DESC_UNSIGNED = 64, /* the immediate is not sign-extended */
    DESC_NO_VVVV = 128, /* VEX.vvvv must be 1111 */
    DESC_NO_REX_B = 256,
    DESC_SHIFT31 = 512,  /* an immediate without any of the low 5 bits leaves the flags alone */
    DESC_SHIFT63 = 1024, /* the same with 6 bits */
    DESC_IS_JCC = 2048,
};

/* Sets of registers read, written and killed, 16 bits each, in one number. */
typedef uint64_t gpr_sets;

struct insn_desc {
    struct insn insn; /* all that every instruction of this kind has in common; implicit registers only */
    uint16_t props;
    uint8_t reg, rm, vvvv; /* ROLE_*; without modrm, rm is the register in the low bits of the opcode */
};

/* Opcode spaces: the four legacy maps, then VEX maps 1 to 3. In each, an opcode has one slot per combination of mandatory
 * prefix and W (legacy: 8), and of L, too (VEX: 16). */
enum { SPACE_ONE_BYTE, SPACE_0F, SPACE_0F38, SPACE_0F3A, SPACE_VEX, SPACES = SPACE_VEX + 3 };
enum { LEGACY_SLOTS = 8, VEX_SLOTS = 16 };

/* An entry is the index of its variants (descriptor numbers, 0 is none), and how many bits of "register form, modrm.reg" do
 * not choose among them: none of the four, all but the first, or all. */
enum {
    ENTRY_BY_MOD_REG = 0 << 13, /* 16 variants: memory with modrm.reg 0..7, then register with 0..7 */
    ENTRY_BY_MOD = 3 << 13,     /* two: memory, register */
    ENTRY_ALWAYS = 4 << 13,     /* one */
    ENTRY_INDEX = (1 << 13) - 1,
};

static inline unsigned variant_of(unsigned entry, unsigned modrm) {
    unsigned form = (modrm >= 0xc0) << 3 | (modrm >> 3 & 7);
    return (entry & ENTRY_INDEX) + (form >> (entry >> 13));
}

/* All fields are as wide as a register: narrow ones, spilled and reloaded, cost as much as all the rest. */
struct scan {
    unsigned space, slot;
    unsigned encoding, opcode, opcode_off, prefix_len;
    unsigned seg;  /* the one segment prefix */
    unsigned lock; /* 0 or 1 */
    unsigned has_rex;
    unsigned rex;  /* W R X B as in a REX prefix, from VEX too */
    unsigned vvvv; /* the register it names: 1111 is 0 */
};

enum { PFX_NONE, PFX_SEG, PFX_66, PFX_F3, PFX_F2, PFX_LOCK, PFX_67 };
static const uint8_t prefix_kind[256] = {
    [0x26] = PFX_SEG, [0x2e] = PFX_SEG, [0x36] = PFX_SEG,  [0x3e] = PFX_SEG, [0x64] = PFX_SEG, [0x65] = PFX_SEG,
    [0x66] = PFX_66,  [0x67] = PFX_67,  [0xf0] = PFX_LOCK, [0xf2] = PFX_F2,  [0xf3] = PFX_F3,
};

/* One segment and one lock prefix at most; 66, f3 and f2 may repeat but not mix. */
static inline bool scan_prefixes(struct scan *s, const uint8_t *b, unsigned *at, unsigned *mandatory) {
    for (unsigned kind; (kind = prefix_kind[b[*at]]) != PFX_NONE; ++*at) {
        if (*at == INSN_MAX_LEN) return false;
        if (kind == PFX_SEG) {
            if (s->seg || b[*at] == 0x65) return false;
            s->seg = b[*at];
        } else if (kind == PFX_LOCK) {
            if (s->lock) return false;
            s->lock = 1;
        } else {
            if ((*mandatory && *mandatory != kind - PFX_SEG) || kind == PFX_67) return false;
            *mandatory = kind - PFX_SEG;
        }
    }
    return true;
}

static inline bool scan_vex(struct scan *s, const uint8_t *b, unsigned at) {
    unsigned last = b[at + 1];
    s->encoding = ENC_VEX2;
    s->space = SPACE_VEX;
    s->rex = ~last >> 5 & 4;
    if (b[at] == 0xc4) {
        unsigned map = last & 31;
        if (map < 1 || map > 3) return false;
        s->encoding = ENC_VEX3;
        s->space = SPACE_VEX - 1 + map;
        s->rex = ~last >> 5 & 7;
        last = b[at + 2];
        s->rex |= last >> 4 & 8;
        at++;
    }
    s->vvvv = ~last >> 3 & 15;
    s->slot = (last & 7) << 1 | s->rex >> 3;
    s->opcode_off = at + 2;
    s->opcode = b[at + 2];
    return true;
}

static inline bool scan_opcode(struct scan *s, const uint8_t *b) {
    unsigned at = 0, mandatory = 0;
    *s = (struct scan){.space = SPACE_ONE_BYTE};
    if (!scan_prefixes(s, b, &at, &mandatory)) return false;
    s->prefix_len = at;
    if (b[at] >> 4 == 4) {
        s->has_rex = 1;
        s->rex = b[at++] & 15;
    }
    if (b[at] == 0x0f) {
        s->space = SPACE_0F;
        at++;
        if (b[at] == 0x38 || b[at] == 0x3a) s->space = b[at++] == 0x38 ? SPACE_0F38 : SPACE_0F3A;
    } else if (b[at] == 0xc4 || b[at] == 0xc5) {
        return !s->has_rex && !mandatory && !s->lock && scan_vex(s, b, at);
    }
    s->slot = mandatory << 1 | s->rex >> 3;
    s->opcode_off = at;
    s->opcode = b[at];
    return true;
}

static inline uint64_t load_u64(const uint8_t *p) {
    uint64_t v;
    __builtin_memcpy(&v, p, 8);
    return v;
}

static inline int64_t load_signed(const uint8_t *p, unsigned size) {
    return (int64_t)(load_u64(p) << (64 - 8 * size)) >> (64 - 8 * size);
}

static inline uint64_t load_unsigned(const uint8_t *p, unsigned size) {
    return load_u64(p) << (64 - 8 * size) >> (64 - 8 * size);
}

static const gpr_sets role_sets[8] = {
    [ROLE_READ] = 1,
    [ROLE_WRITE] = 1 << 16,
    [ROLE_READ | ROLE_WRITE] = 1 << 16 | 1,
    [ROLE_WRITE | ROLE_KILL] = 1ull << 32 | 1 << 16,
    [ROLE_READ | ROLE_WRITE | ROLE_KILL] = 1ull << 32 | 1 << 16 | 1,
};

/* What an instruction does to the register that a field of three bits and one of REX name. */
static inline gpr_sets sets_of_field(unsigned role, unsigned low, unsigned high, unsigned has_rex) {
    unsigned n = low & 7;
    if (unlikely(role & ROLE_BYTE) && !has_rex) n &= 3;
    return role_sets[role & 7] << (n | (high & 1) << 3);
}

/* Without branches where it can be: the processor would mispredict many of them. Returns where the operand ends. */
static inline unsigned fill_mem(struct insn *in, const uint8_t *b, unsigned at, unsigned modrm, unsigned rex,
                                gpr_sets *sets) {
    unsigned mod = modrm >> 6, base = modrm & 7;
    if (base == 4) {
        unsigned sib = b[at], index = (sib >> 3 & 7) | (rex & 2) << 2;
        in->sib_off = (uint8_t)at++;
        base = sib & 7;
        *sets |= (unsigned)(index != 4) << index;
    }
    unsigned no_base = (mod == 0) & (base == 5);
    unsigned disp_size = (mod & 1) | (mod & 2) << 1 | no_base << 2;
    *sets |= (no_base ^ 1) << (base | (rex & 1) << 3);
    in->disp_size = (uint8_t)disp_size;
    in->disp_off = disp_size ? (uint8_t)at : 0;
    return at + disp_size;
}

/* Fields that every instruction has. The descriptor is copied word by word: left to itself, gcc calls memcpy or uses rep. */
static inline void fill_common(struct insn *in, const struct insn_desc *d, const struct scan *s, gaddr pc) {
    _Static_assert(sizeof(struct insn) == 64, "copied as 8 words");
    const uint8_t *from = (const uint8_t *)&d->insn;
    uint8_t *to = (uint8_t *)in;
    for (int i = 0; i < 64; i += 8) __builtin_memcpy(to + i, from + i, 8);
    in->pc = pc;
    in->encoding = (uint8_t)s->encoding;
    in->opcode = (uint8_t)s->opcode;
    in->opcode_off = (uint8_t)s->opcode_off;
    in->prefix_len = (uint8_t)s->prefix_len;
    if (s->has_rex) {
        in->has_rex = true;
        in->rex_off = (uint8_t)s->prefix_len;
    }
}

static inline bool fits(const struct insn_desc *d, const struct scan *s) {
    return (!s->lock || d->props & DESC_LOCKABLE) && (!s->vvvv || !(d->props & DESC_NO_VVVV)) &&
           (!(d->props & DESC_NO_REX_B) || !(s->rex & 1));
}

static inline bool fill_from_desc(struct insn *in, const struct insn_desc *d, const struct scan *s, const uint8_t *b,
                                  gaddr pc) {
    unsigned props = d->props, at = s->opcode_off + 1;
    if (unlikely(!fits(d, s))) return false;
    fill_common(in, d, s, pc);

    gpr_sets sets = 0;
    if (props & DESC_MODRM) {
        unsigned modrm = b[at];
        in->modrm = (uint8_t)modrm;
        in->modrm_off = (uint8_t)at++;
        sets = sets_of_field(d->reg, modrm >> 3, s->rex >> 2, s->has_rex);
        if (props & DESC_MEM)
            at = fill_mem(in, b, at, modrm, s->rex, &sets);
        else
            sets |= sets_of_field(d->rm, modrm, s->rex, s->has_rex);
        if (s->encoding != ENC_LEGACY) sets |= role_sets[d->vvvv] << s->vvvv;
    } else {
        sets = sets_of_field(d->rm, s->opcode, s->rex, s->has_rex);
        if (unlikely(props & DESC_MOFFS)) {
            in->disp_off = (uint8_t)at;
            at += 8;
        }
    }
    in->gpr_read |= (uint16_t)sets;
    in->gpr_write |= (uint16_t)(sets >> 16);
    in->gpr_kill |= (uint16_t)(sets >> 32);

    unsigned imm_off = at;
    at += d->insn.imm_size;
    if (unlikely(at > INSN_MAX_LEN)) return false;
    in->len = (uint8_t)at;
    if (d->insn.imm_size) {
        in->imm_off = (uint8_t)imm_off;
        in->imm = load_signed(b + imm_off, d->insn.imm_size);
        if (props & DESC_BRANCH) in->target = pc + at + (uint64_t)in->imm;
        if (unlikely(props & (DESC_UNSIGNED | DESC_SHIFT31 | DESC_SHIFT63))) {
            if (props & DESC_UNSIGNED) in->imm = (int64_t)load_unsigned(b + imm_off, d->insn.imm_size);
            unsigned mask = props & DESC_SHIFT31 ? 31 : props & DESC_SHIFT63 ? 63 : 0xff;
            if (!(in->imm & mask)) in->flags_kill = 0;
        }
    }
    if (props & DESC_MEM && (in->modrm & 0xc7) == 5) {
        in->rip_rel = true;
        in->target = pc + at + (uint64_t)load_signed(b + in->disp_off, 4);
    }
    if (props & DESC_IS_JCC) in->cc = s->opcode & 15;
    if (unlikely(s->lock)) in->lock = true;
    if (unlikely(s->seg == 0x64) && props & DESC_SEGMENT) in->seg = 0x64;
    return true;
}

#endif

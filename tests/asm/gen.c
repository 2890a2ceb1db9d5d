/* Generates the instruction cases: walks the opcode maps, keeps what Zydis accepts, and gives every form a handful of
 * cases with different registers, immediates and addressing modes.
 *
 * A form is a mnemonic with its prefixes (lock, rep), encoding, and the kinds and sizes of its operands:
 *   "lock add m32,r32", "vpaddd ymm,ymm,m256", "fadd st0,st".
 * Two opcodes of one form (01 /r and 03 /r with two registers) are one form but get cases each.
 *
 * usage: gen DIR    writes DIR/cases.bin (struct asm_case[]), DIR/cases.S (the code), DIR/cases.txt (number, form, text) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "case.h"
#include "enc.h"
#include "gen.h"

static ZydisDecoder decoder;
static ZydisFormatter formatter;

/* --- random numbers: the same on every machine --- */

static uint64_t rng_state = 0x5eed;

uint32_t rnd(void)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (uint32_t)(z >> 32);
}

/* --- decoding --- */

bool decode(const uint8_t *bytes, int len, struct decoded *d)
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, (ZyanUSize)len, &d->insn, d->ops));
}

/* Transfers of control, the kernel, other processors, time, chance: tested by hand or not at all. */
static bool skipped(const struct decoded *d)
{
    for (int i = 0; i < d->insn.operand_count; i++)
        if (d->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && d->ops[i].reg.value == ZYDIS_REGISTER_FS &&
            d->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            return true; /* a null selector loads: no more thread-local storage */
    switch (d->insn.meta.category) {
    case ZYDIS_CATEGORY_CALL: case ZYDIS_CATEGORY_COND_BR: case ZYDIS_CATEGORY_UNCOND_BR: case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSCALL: case ZYDIS_CATEGORY_INTERRUPT: case ZYDIS_CATEGORY_VTX: case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_XSAVE: case ZYDIS_CATEGORY_XSAVEOPT: case ZYDIS_CATEGORY_UINTR: case ZYDIS_CATEGORY_RDRAND:
    case ZYDIS_CATEGORY_RDSEED: case ZYDIS_CATEGORY_RDPID: case ZYDIS_CATEGORY_RDPRU: case ZYDIS_CATEGORY_WAITPKG:
    case ZYDIS_CATEGORY_PKU: case ZYDIS_CATEGORY_HRESET: case ZYDIS_CATEGORY_PCONFIG: case ZYDIS_CATEGORY_ENQCMD:
    case ZYDIS_CATEGORY_PADLOCK: case ZYDIS_CATEGORY_KNC: case ZYDIS_CATEGORY_KEYLOCKER:
    case ZYDIS_CATEGORY_KEYLOCKER_WIDE: case ZYDIS_CATEGORY_PT:
        return true;
    default:
        break;
    }
    switch (d->insn.meta.isa_ext) {
    case ZYDIS_ISA_EXT_SVM: case ZYDIS_ISA_EXT_SMX: case ZYDIS_ISA_EXT_MONITOR: case ZYDIS_ISA_EXT_MONITORX:
    case ZYDIS_ISA_EXT_TDX: case ZYDIS_ISA_EXT_SNP: case ZYDIS_ISA_EXT_KNC: case ZYDIS_ISA_EXT_KNCE:
    case ZYDIS_ISA_EXT_KNCV:
        return true;
    default:
        break;
    }
    switch (d->insn.mnemonic) {
    case ZYDIS_MNEMONIC_RDTSC: case ZYDIS_MNEMONIC_RDTSCP: case ZYDIS_MNEMONIC_RDPMC: case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_SGDT: case ZYDIS_MNEMONIC_SIDT: case ZYDIS_MNEMONIC_SLDT: case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_STR: case ZYDIS_MNEMONIC_LSL: case ZYDIS_MNEMONIC_XBEGIN: case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_RDFSBASE: case ZYDIS_MNEMONIC_WRFSBASE: case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_RSTORSSP: case ZYDIS_MNEMONIC_SAVEPREVSSP: case ZYDIS_MNEMONIC_INCSSPD:
    case ZYDIS_MNEMONIC_INCSSPQ: case ZYDIS_MNEMONIC_WRSSD: case ZYDIS_MNEMONIC_WRSSQ:
        return true;
    default:
        return false;
    }
}

/* The form's name; see the head of this file. */
static void form_name(const struct decoded *d, char *name, size_t size)
{
    const ZydisDecodedInstruction *in = &d->insn;
    static const struct { ZyanU64 attr; const char *name; } prefixes[] = {
        {ZYDIS_ATTRIB_HAS_LOCK, "lock "},         {ZYDIS_ATTRIB_HAS_REP, "rep "},
        {ZYDIS_ATTRIB_HAS_REPE, "repe "},         {ZYDIS_ATTRIB_HAS_REPNE, "repne "},
        {ZYDIS_ATTRIB_HAS_XACQUIRE, "xacquire "}, {ZYDIS_ATTRIB_HAS_XRELEASE, "xrelease "},
    };
    size_t n = 0;
#define ADD(...) (n += (size_t)snprintf(name + n, n < size ? size - n : 0, __VA_ARGS__))
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (in->attributes & prefixes[i].attr)
            ADD("%s", prefixes[i].name);
    ADD("%s", ZydisMnemonicGetString(in->mnemonic));

    bool explicit_mem = false, hidden_mem = false;
    for (int i = 0; i < in->operand_count; i++) {
        const ZydisDecodedOperand *op = &d->ops[i];
        bool visible = i < in->operand_count_visible;
        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
            *(visible && op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM ? &explicit_mem : &hidden_mem) = true;
        if (!visible)
            continue;
        ADD("%s", i ? "," : " ");
        switch (op->type) {
        case ZYDIS_OPERAND_TYPE_REGISTER:
            if (op->encoding == ZYDIS_OPERAND_ENCODING_NONE)
                ADD("%s", ZydisRegisterGetString(op->reg.value));
            else if (ZydisRegisterGetClass(op->reg.value) <= ZYDIS_REGCLASS_GPR64)
                ADD("r%d", op->size);
            else
                ADD("%.*s", (int)strcspn(ZydisRegisterGetString(op->reg.value), "0123456789"),
                    ZydisRegisterGetString(op->reg.value));
            break;
        case ZYDIS_OPERAND_TYPE_MEMORY:
            ADD("%s%d", op->mem.type == ZYDIS_MEMOP_TYPE_VSIB ? "v" : op->encoding == ZYDIS_OPERAND_ENCODING_NONE ? "*" : "m",
                op->size);
            break;
        case ZYDIS_OPERAND_TYPE_IMMEDIATE:
            if (op->encoding == ZYDIS_OPERAND_ENCODING_NONE)
                ADD("%d", (int)op->imm.value.u);
            else
                ADD("i%d", in->raw.imm[op->encoding == ZYDIS_OPERAND_ENCODING_UIMM8 && in->raw.imm[1].size ? 1 : 0].size);
            break;
        default:
            ADD("far");
        }
    }
    if (!explicit_mem && hidden_mem && in->address_width == 32)
        ADD(" a32");
    if (!explicit_mem && hidden_mem && in->attributes & ZYDIS_ATTRIB_HAS_SEGMENT_GS)
        ADD(" gs");
    if (in->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
        ADD(" evex%s%s", in->avx.mask.mode == ZYDIS_MASK_MODE_DISABLED || in->avx.mask.reg == ZYDIS_REGISTER_K0 ? "" : " {k}",
            in->avx.mask.mode == ZYDIS_MASK_MODE_ZEROING || in->avx.mask.mode == ZYDIS_MASK_MODE_CONTROL_ZEROING ? "{z}" : "");
        if (in->avx.broadcast.mode && !in->avx.broadcast.is_static)
            ADD(" bcst");
        if (in->avx.rounding.mode)
            ADD(" er");
        else if (in->avx.has_sae)
            ADD(" sae");
    }
#undef ADD
}

/* --- forms --- */

#define MAX_FORMS 40000
#define SEQUENCES 3000
#define HASH_SIZE (1 << 17)

struct form forms[MAX_FORMS];
int nforms;
static int ngroups;
static char *seen[2][HASH_SIZE]; /* [0] names with opcode, [1] names */
static uint32_t seen_value[2][HASH_SIZE];

static uint32_t intern(int table, const char *s, uint32_t fresh)
{
    uint32_t h = 2166136261u;
    for (const char *p = s; *p; p++)
        h = (h ^ (uint8_t)*p) * 16777619u;
    for (h &= HASH_SIZE - 1; seen[table][h]; h = (h + 1) & (HASH_SIZE - 1))
        if (!strcmp(seen[table][h], s))
            return seen_value[table][h];
    seen[table][h] = strdup(s);
    return seen_value[table][h] = fresh;
}

static bool has_encoding(const struct decoded *d, ZydisOperandEncoding e)
{
    for (int i = 0; i < d->insn.operand_count; i++)
        if (d->ops[i].encoding == e)
            return true;
    return false;
}

/* The name plus what tells apart encodings of one form. */
static void variant_name(const struct decoded *d, const struct tmpl *t, char *out, size_t size)
{
    char name[200];
    form_name(d, name, sizeof name);
    bool group = d->insn.attributes & ZYDIS_ATTRIB_HAS_MODRM && !has_encoding(d, ZYDIS_OPERAND_ENCODING_MODRM_REG);
    bool rm_ext = group && d->insn.raw.modrm.mod == 3 && !has_encoding(d, ZYDIS_OPERAND_ENCODING_MODRM_RM);
    snprintf(out, size, "%s|%d.%d.%02x.%d.%d.w%d", name, t->kind, t->map,
             has_encoding(d, ZYDIS_OPERAND_ENCODING_OPCODE) ? d->insn.opcode & ~7 : d->insn.opcode,
             group ? d->insn.raw.modrm.reg : 0, rm_ext ? d->insn.raw.modrm.rm : 0, t->kind == ENC_LEGACY ? 0 : t->w);
}

/* Decodes a template as it stands; files it if it is new. Returns whether the opcode takes a ModRM byte. */
static bool consider(struct tmpl t)
{
    struct fields f = {.reg = t.reg, .rm = t.mem ? 3 : t.rm, .mode = ADDR_BASE_D8, .disp = 0x10, .mask = 1, .vex3 = true};
    uint8_t bytes[40] = {0};
    struct decoded d;

    t.modrm = true;
    f.tail[0] = 1;
    int len = encode(&t, &f, bytes);
    if (!decode(bytes, len, &d) && (f.mode = ADDR_BASE_INDEX, f.index = 1, len = encode(&t, &f, bytes), !decode(bytes, len, &d))) {
        if (t.kind == ENC_LEGACY)
            return true;
        t.vvvv_free = true; /* a V operand that must not be the all-ones of "none", as for gathers */
        f.vvvv = 2;
        len = encode(&t, &f, bytes);
        if (!decode(bytes, len, &d))
            return true;
    }
    bool modrm = d.insn.attributes & ZYDIS_ATTRIB_HAS_MODRM;
    if (skipped(&d) || (t.lock && !(d.insn.attributes & ZYDIS_ATTRIB_HAS_LOCK)))
        return modrm;
    t.modrm = modrm;
    t.mem = t.mem && modrm;
    t.reg_free = has_encoding(&d, ZYDIS_OPERAND_ENCODING_MODRM_REG);
    t.rm_free = has_encoding(&d, ZYDIS_OPERAND_ENCODING_MODRM_RM);
    t.op_free = has_encoding(&d, ZYDIS_OPERAND_ENCODING_OPCODE);
    t.vvvv_free = has_encoding(&d, ZYDIS_OPERAND_ENCODING_NDSNDD);

    char key[240], name[200];
    variant_name(&d, &t, key, sizeof key);
    form_name(&d, name, sizeof name);
    if (intern(0, key, (uint32_t)nforms) != (uint32_t)nforms)
        return modrm;
    if (nforms == MAX_FORMS)
        abort();
    struct form *form = &forms[nforms++];
    form->t = t;
    form->name = strdup(name);
    ngroups += intern(1, name, (uint32_t)ngroups) == (uint32_t)ngroups;
    form->isa_ext = (uint16_t)d.insn.meta.isa_ext;
    form->category = (uint16_t)d.insn.meta.category;
    form->privileged = d.insn.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED;

    /* String operations and the like: with 32-bit addresses and a gs override, too. */
    bool hidden_mem = false;
    for (int i = 0; i < d.insn.operand_count; i++)
        hidden_mem |= d.ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY && d.ops[i].encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM &&
                      d.ops[i].mem.base != ZYDIS_REGISTER_RSP && d.ops[i].mem.base != ZYDIS_REGISTER_RBP;
    if (hidden_mem && !t.a32 && !t.gs) {
        t.a32 = true;
        consider(t);
        t.a32 = false, t.gs = true;
        consider(t);
    }
    return modrm;
}

/* All ModRM bytes that may matter to an opcode. */
static void consider_opcode(struct tmpl t, int rms)
{
    for (int mem = 0; mem < 2; mem++) {
        for (int reg = 0; reg < 8; reg++) {
            for (int rm = 0; rm < (mem ? 1 : rms); rm++) {
                t.mem = mem, t.reg = (uint8_t)reg, t.rm = (uint8_t)rm;
                if (!consider(t))
                    return;
            }
        }
    }
}

static void enumerate(void)
{
    struct tmpl t;
    for (int lock = 0; lock < 2; lock++)
        for (int map = 0; map < 4; map++)
            for (int op = 0; op < 256; op++)
                for (int pfx = 0; pfx < (lock ? 2 : LEGACY_PREFIXES); pfx++)
                    for (int w = 0; w < 2; w++) {
                        t = (struct tmpl){.kind = ENC_LEGACY, .pfx = (uint8_t)pfx, .map = (uint8_t)map, .op = (uint8_t)op,
                                          .w = (uint8_t)w, .lock = lock};
                        bool prefix = map == 0 && ((op & 0xe7) == 0x26 || (op & 0xfc) == 0x64 || (op & 0xf0) == 0x40 ||
                                                   op == 0xf0 || op == 0xf2 || op == 0xf3 || op == 0x0f || op == 0x62 ||
                                                   op == 0xc4 || op == 0xc5);
                        if (!prefix && !(map == 1 && (op == 0x38 || op == 0x3a)))
                            consider_opcode(t, 8);
                    }
    static const uint8_t vex_maps[] = {1, 2, 3}, xop_maps[] = {8, 9, 10}, evex_maps[] = {1, 2, 3, 5, 6};
    for (int kind = ENC_VEX; kind <= ENC_XOP; kind++)
        for (int m = 0; m < 3; m++)
            for (int op = 0; op < 256; op++)
                for (int v = 0; v < 16; v++) {
                    t = (struct tmpl){.kind = (uint8_t)kind, .map = kind == ENC_VEX ? vex_maps[m] : xop_maps[m],
                                      .op = (uint8_t)op, .pfx = v & 3, .w = v >> 2 & 1, .l = v >> 3 & 1};
                    consider_opcode(t, 1);
                }
    for (size_t m = 0; m < sizeof evex_maps; m++)
        for (int op = 0; op < 256; op++)
            for (int v = 0; v < 24; v++)
                for (int attr = 0; attr < 5; attr++) {
                    t = (struct tmpl){.kind = ENC_EVEX, .map = evex_maps[m], .op = (uint8_t)op, .pfx = v & 3,
                                      .w = v >> 2 & 1, .l = (uint8_t)(v >> 3), .masked = attr == 1 || attr == 2 || attr == 4,
                                      .zeroing = attr == 2, .evex_b = attr >= 3};
                    consider_opcode(t, 1);
                }
}

/* --- cases --- */

static int gpr_number(ZydisRegister r)
{
    return r == ZYDIS_REGISTER_NONE ? NO_REG : ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r));
}

/* How registers must be set for the memory operands; false: not in this way (base and index the same...). */
static bool describe_memory(const struct decoded *d, struct asm_case *c)
{
    if (d->insn.mnemonic == ZYDIS_MNEMONIC_CLZERO) /* its address does not show as a memory operand */
        c->mem[c->nmem++] = (struct case_mem){.base = 0, .index = NO_REG};
    for (int i = 0; i < d->insn.operand_count; i++) {
        const ZydisDecodedOperand *op = &d->ops[i];
        if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
            continue;
        int base = op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP ? NO_REG : gpr_number(op->mem.base);
        bool vsib = op->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
        int index = vsib ? NO_REG : op->mem.index == ZYDIS_REGISTER_AL ? NO_REG : gpr_number(op->mem.index);
        if (vsib) {
            c->vsib_reg = (uint8_t)ZydisRegisterGetId(op->mem.index);
            c->vsib_bits = d->insn.meta.isa_ext == ZYDIS_ISA_EXT_INVALID ? 0 : 32;
            const char *name = ZydisMnemonicGetString(d->insn.mnemonic);
            if (strstr(name, "gatherq") || strstr(name, "scatterq") || strstr(name, "pf0q") || strstr(name, "pf1q"))
                c->vsib_bits = 64;
            if (base == NO_REG)
                return false;
        }
        if (base == NO_REG && index == NO_REG) {
            if (c->area == AREA_NONE)
                return false;
            continue; /* named by the displacement alone */
        }
        if (base == index || c->nmem == 2)
            return c->nmem == 2;
        if (op->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM && base == 4)
            continue; /* the stack is always there */
        struct case_mem *m = &c->mem[c->nmem++];
        m->base = (uint8_t)base, m->index = (uint8_t)index;
        m->scale = index == NO_REG ? 0 : op->mem.scale;
        m->flags = d->insn.address_width == 32 ? MEM_A32 : 0;
        m->disp = (int32_t)op->mem.disp.value;
    }
    return true;
}

static void describe_flags(const struct decoded *d, struct asm_case *c)
{
    const ZydisDecodedInstruction *in = &d->insn;
    if (in->meta.category == ZYDIS_CATEGORY_STRINGOP || in->meta.category == ZYDIS_CATEGORY_IOSTRINGOP)
        c->flags |= CASE_STRING;
    if (in->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
        c->flags |= CASE_REP;
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_DIV: case ZYDIS_MNEMONIC_IDIV:
        c->flags |= CASE_DIV;
        break;
    case ZYDIS_MNEMONIC_CMPXCHG: case ZYDIS_MNEMONIC_CMPXCHG8B: case ZYDIS_MNEMONIC_CMPXCHG16B:
        c->flags |= CASE_CMPXCHG;
        break;
    case ZYDIS_MNEMONIC_BT: case ZYDIS_MNEMONIC_BTS: case ZYDIS_MNEMONIC_BTR: case ZYDIS_MNEMONIC_BTC:
        if (d->ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY && d->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
            c->flags |= CASE_BITOFF, c->bitreg = (uint8_t)gpr_number(d->ops[1].reg.value);
        break;
    case ZYDIS_MNEMONIC_FNSTENV: case ZYDIS_MNEMONIC_FNSAVE:
        c->flags |= in->operand_width == 16 ? CASE_ENV16 : CASE_ENV32;
        break;
    case ZYDIS_MNEMONIC_FXSAVE: case ZYDIS_MNEMONIC_FXSAVE64:
        c->flags |= CASE_ENVFX;
        break;
    case ZYDIS_MNEMONIC_LEA:
        if (c->area == AREA_RIP)
            c->flags |= d->ops[0].size < 64 ? CASE_NOPIE : CASE_ADDRESS;
        break;
    default:
        break;
    }
    if (c->area == AREA_EIP)
        c->flags |= CASE_NOPIE;
}

struct fields random_fields(const struct tmpl *t, int mode)
{
    struct fields f = {.mode = (uint8_t)mode, .mask = (uint8_t)(1 + rnd() % 7)};
    int regs = t->kind == ENC_EVEX ? 32 : 16;
    f.reg = (uint8_t)(rnd() % (rnd() % 2 ? 8 : (uint32_t)regs));
    f.rm = (uint8_t)(rnd() % (rnd() % 2 ? 8 : t->mem ? 16 : (uint32_t)regs));
    f.vvvv = (uint8_t)(rnd() % (uint32_t)regs);
    f.index = (uint8_t)(rnd() % 16);
    f.scale = rnd() % 4;
    f.force_rex = rnd() % 8 == 0;
    f.vex3 = rnd() % 2;
    for (size_t i = 0; i < sizeof f.tail; i++)
        f.tail[i] = (uint8_t)rnd();
    if (t->kind == ENC_LEGACY && t->map == 0 && t->op == 0xc8) /* enter: a small frame, few levels */
        f.tail[1] = 0, f.tail[2] &= 3;
    f.disp = (int32_t)(rnd() & 0x78) - 0x40; /* a multiple of 8: index-only addresses divide by the scale */
    if (mode == ADDR_BASE_D32 || mode == ADDR_BASE_INDEX_D32 || mode == ADDR_A32_INDEX)
        f.disp = (int32_t)(rnd() & 0xfffffff8) >> (rnd() % 2 ? 1 : 12);
    if (mode == ADDR_INDEX || mode == ADDR_RSP_INDEX)
        f.disp = (int32_t)(rnd() & 0xff8) - 0x800;
    if (rnd() % 10 == 0 && mode != ADDR_FS && mode != ADDR_FS_BASE && mode != ADDR_GS_BASE && mode != ADDR_GS_ABS && !t->gs) {
        static const uint8_t null_prefixes[] = {0x2e, 0x36, 0x3e, 0x26};
        f.npad = (uint8_t)(1 + rnd() % 9);
        for (int i = 0; i < f.npad; i++)
            f.pad[i] = null_prefixes[rnd() % 4];
        if (t->kind == ENC_LEGACY && f.npad > 1 && rnd() % 2)
            f.pad[0] = (uint8_t)(0x40 | rnd() % 16); /* a REX that a later prefix makes void */
    }
    return f;
}

bool make_case(const struct form *form, const struct fields *f, struct asm_case *c)
{
    const struct tmpl *t = &form->t;
    int mode = f->mode;
    uint8_t bytes[48] = {0};
    struct decoded d;
    char name[200];

    int len = encode(t, f, bytes);
    if (!decode(bytes, len > 15 ? 15 : len, &d))
        return false;
    form_name(&d, name, sizeof name);
    if (strcmp(name, form->name))
        return false;
    *c = (struct asm_case){.len = d.insn.length, .bitreg = NO_REG};
    memcpy(c->bytes, bytes, c->len);
    memset(c->mem, NO_REG, sizeof c->mem);

    bool has_mem = false;
    for (int i = 0; i < d.insn.operand_count; i++)
        has_mem |= d.ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY;
    if (has_mem && d.insn.raw.disp.size >= 32) {
        c->disp_off = d.insn.raw.disp.offset, c->disp_size = d.insn.raw.disp.size / 8;
        c->area = !t->mem || mode == ADDR_ABS || mode == ADDR_GS_ABS || mode == ADDR_A32_ABS ? AREA_ABS
                  : mode == ADDR_RIP                                                        ? AREA_RIP
                  : mode == ADDR_EIP                                                        ? AREA_EIP
                  : mode == ADDR_FS || mode == ADDR_FS_BASE                                 ? AREA_FS
                                                                                            : AREA_NONE;
        c->area_off = (uint16_t)(0x800 + (rnd() % 4 ? 0 : rnd() % 16));
        for (int i = 0; i < d.insn.operand_count; i++) /* movdir64b's register form says how wide its addresses are */
            if (d.ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY && d.ops[i].mem.base == ZYDIS_REGISTER_EIP)
                c->area = AREA_EIP;
        if (c->area == AREA_ABS) {
            uint64_t address = ARENA + c->area_off;
            memcpy(c->bytes + c->disp_off, &address, c->disp_size);
            if (!decode(c->bytes, c->len, &d))
                abort();
        }
        if (c->area == AREA_NONE)
            c->disp_off = c->disp_size = 0;
    }
    if (!describe_memory(&d, c))
        return false;
    if (c->area == AREA_FS && c->nmem)
        c->mem[0].flags |= MEM_FIXED;
    describe_flags(&d, c);
    return true;
}

/* --- output --- */

static FILE *open_in(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f)
        perror(path), exit(1);
    return f;
}

void format(const uint8_t *bytes, int len, char *text, size_t size)
{
    struct decoded d;
    if (!decode(bytes, len, &d) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &d.insn, d.ops, d.insn.operand_count_visible, text, size,
                                                      ZYDIS_RUNTIME_ADDRESS_NONE, NULL)))
        snprintf(text, size, "(bad)");
}

/* The instruction as .byte, with the displacement left to the linker where it names rip_area or tls_area. */
void put_code(FILE *s, const struct asm_case *c)
{
    int split = c->area == AREA_RIP || c->area == AREA_EIP || c->area == AREA_FS ? c->disp_off : c->len;
    fprintf(s, "\t.byte ");
    for (int i = 0; i < split; i++)
        fprintf(s, "%s0x%02x", i ? "," : "", c->bytes[i]);
    fprintf(s, "\n");
    if (split == c->len)
        return;
    if (c->area == AREA_FS)
        fprintf(s, "\t.long tls_area@tpoff + %d\n", c->area_off);
    else
        fprintf(s, "\t.long rip_area + %d - (. + %d)\n", c->area_off, c->len - c->disp_off);
    if (split + 4 < c->len)
        fprintf(s, "\t.byte ");
    for (int i = split + 4; i < c->len; i++)
        fprintf(s, "%s0x%02x", i > split + 4 ? "," : "", c->bytes[i]);
    fprintf(s, "\n");
}

struct outputs out;

void put_case(const struct asm_case *c, const char *form, const char *text)
{
    fwrite(c, sizeof *c, 1, out.bin);
    fprintf(out.txt, "%d\t%s\t%s\t", out.ncases, form, text);
    for (int i = 0; i < c->len; i++)
        fprintf(out.txt, "%02x", c->bytes[i]);
    fprintf(out.txt, "\n");
    out.ncases++;
}

static void emit_form(const struct form *form)
{
    const struct tmpl *t = &form->t;
    struct asm_case c;
    int want = t->kind == ENC_EVEX || t->kind == ENC_XOP ? 1 : t->kind == ENC_VEX ? 2 : 3;
    char text[200];

    for (int i = 0; i < want + t->mem * want; i++) {
        bool made = false;
        for (int attempt = 0; attempt < 200 && !made; attempt++) {
            int mode = i == 0 && attempt < 8 ? ADDR_RIP : 1 + (int)(rnd() % (ADDR_MODES - 1));
            struct fields f = random_fields(t, mode);
            made = make_case(form, &f, &c);
        }
        if (!made) {
            if (i == 0)
                fprintf(stderr, "gen: no case of %s\n", form->name);
            return;
        }
        c.code_off = out.code_size;
        out.code_size += CASE_SLOT;
        fprintf(out.code, "\t.p2align 5\n");
        put_code(out.code, &c);
        fprintf(out.code, "\tjmp form_done\n");
        format(c.bytes, c.len, text, sizeof text);
        put_case(&c, form->name, text);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return fprintf(stderr, "usage: gen DIR\n"), 2;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    out.bin = open_in(argv[1], "cases.bin");
    out.txt = open_in(argv[1], "cases.txt");
    out.code = open_in(argv[1], "cases.S");
    fprintf(out.code, "\t.text\n\t.globl form_code\n\t.p2align 8\nform_code:\n");

    enumerate();
    for (int i = 0; i < nforms; i++)
        emit_form(&forms[i]);
    int singles = out.ncases;
    emit_sequences(SEQUENCES);
    fprintf(stderr, "gen: %d forms, %d encodings of them, %d cases; %d sequences\n", ngroups, nforms, singles,
            out.ncases - singles);
    fprintf(out.code, "\t.section .note.GNU-stack,\"\",@progbits\n");
    return fclose(out.bin) | fclose(out.txt) | fclose(out.code);
}

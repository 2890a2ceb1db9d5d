#include "why/flow.h"

#include <stdio.h>
#include <string.h>

#include <Zydis/Zydis.h>

#define RSP 4
#define RDI 7
#define RSI 6
#define RCX 1
#define RAX 0
#define DIRECTION_FLAG (1u << 10)
#define NO_REGISTER UINT32_MAX

struct decoded {
    ZydisDecodedInstruction in;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    const char *name;
};

static bool decode(struct decoded *d, const uint8_t *bytes, size_t n) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &d->in, d->op))) return false;
    d->name = ZydisMnemonicGetString(d->in.mnemonic);
    return d->name != NULL;
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* ---- where operands are ---- */

static uint32_t number_of(ZydisRegister r) {
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
    ZyanI8 id = ZydisRegisterGetId(whole);
    switch (ZydisRegisterGetClass(whole)) {
    case ZYDIS_REGCLASS_GPR64: return (uint32_t)id;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM: return REGISTER_VECTOR + (uint32_t)id;
    default: return NO_REGISTER;
    }
}

static uint64_t gpr(const struct machine *m, ZydisRegister r) {
    uint32_t n = number_of(r);
    return n < 16 ? m->gpr[n] : 0;
}

static bool is_string(const struct decoded *d) {
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ: return true;
    case ZYDIS_MNEMONIC_MOVSD: return d->in.meta.category == ZYDIS_CATEGORY_STRINGOP;
    default: return false;
    }
}

/* Of the element that a string instruction begins with. */
static uint64_t address_of(const struct decoded *d, const ZydisDecodedOperand *o, const struct machine *m) {
    uint64_t a = (uint64_t)(o->mem.disp.has_displacement ? o->mem.disp.value : 0);
    if (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP)
        a += m->pc + d->in.length;
    else if (o->mem.base != ZYDIS_REGISTER_NONE)
        a += gpr(m, o->mem.base);
    if (o->mem.index != ZYDIS_REGISTER_NONE) a += gpr(m, o->mem.index) * (o->mem.scale ? o->mem.scale : 1);
    if (d->in.address_width == 32) a = (uint32_t)a;
    if (o->mem.segment == ZYDIS_REGISTER_FS) a += m->fs_base;
    if (o->mem.segment == ZYDIS_REGISTER_GS) a += m->gs_base;
    bool pushes = d->in.meta.category == ZYDIS_CATEGORY_PUSH || d->in.meta.category == ZYDIS_CATEGORY_CALL;
    if (pushes && o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN) a -= o->size / 8; /* below where rsp points */
    return a;
}

/* False: no memory and no register of interest. */
static bool place_of(const struct decoded *d, const ZydisDecodedOperand *o, const struct machine *m, struct place *p) {
    *p = (struct place){.len = o->size / 8};
    if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        p->addr = address_of(d, o, m);
        return o->mem.type == ZYDIS_MEMOP_TYPE_MEM;
    }
    if (o->type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
    p->is_register = true;
    p->reg = number_of(o->reg.value);
    p->offset = o->reg.value >= ZYDIS_REGISTER_AH && o->reg.value <= ZYDIS_REGISTER_BH;
    return p->reg != NO_REGISTER;
}

/* All elements that a string instruction with rep goes through. */
static void widen(const struct decoded *d, const struct machine *m, struct place *p) {
    if (!is_string(d) || !(d->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE))) return;
    uint64_t bytes = m->gpr[RCX] * p->len;
    if (m->rflags & DIRECTION_FLAG) p->addr -= bytes - p->len;
    p->len = bytes;
}

static bool overlap(const struct place *a, const struct place *b, struct place *both) {
    if (a->is_register != b->is_register || (a->is_register && a->reg != b->reg)) return false;
    uint64_t x = a->is_register ? a->offset : a->addr, y = b->is_register ? b->offset : b->addr;
    uint64_t lo = x > y ? x : y, hi = x + a->len < y + b->len ? x + a->len : y + b->len;
    if (lo >= hi) return false;
    *both = *a;
    both->len = hi - lo;
    if (a->is_register)
        both->offset = (uint32_t)lo;
    else
        both->addr = lo;
    return true;
}

static uint64_t begin_of(const struct place *p) { return p->is_register ? p->offset : p->addr; }

/* len bytes of p from byte `at` on. */
static struct place part(struct place p, uint64_t at, size_t len) {
    if (p.is_register)
        p.offset += (uint32_t)at;
    else
        p.addr += at;
    p.len = at < p.len && p.len - at < len ? p.len - at : len;
    return p;
}

/* ---- what becomes of them ---- */

static bool constant(struct flow *f, uint64_t value) {
    f->kind = FLOW_CONSTANT;
    f->value = value;
    return true;
}

static bool copy(struct flow *f, struct place from) {
    f->kind = FLOW_COPY;
    f->input[0] = from;
    f->n_inputs = 1;
    return true;
}

static bool add_input(struct flow *f, struct place p) {
    for (size_t i = 0; i < f->n_inputs; i++)
        if (f->input[i].is_register == p.is_register && f->input[i].reg == p.reg && f->input[i].addr == p.addr)
            return false;
    if (f->n_inputs < FLOW_INPUTS) f->input[f->n_inputs++] = p;
    return true;
}

static bool is_half_move(const char *name) { return begins(name, "movhp") || begins(name, "vmovhp"); }

/* mov in all its forms: byte `at` of the destination comes from the same byte of the source. */
static bool move(const struct decoded *d, const struct machine *m, uint64_t at, struct flow *f) {
    const ZydisDecodedOperand *from = &d->op[d->in.operand_count_visible - 1];
    struct place src;
    if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return constant(f, from->imm.value.u);
    if (!place_of(d, from, m, &src)) return false;
    if (is_half_move(d->name)) { /* the upper half of a register, and eight bytes of memory */
        if (src.is_register) return copy(f, part(src, at + 8, f->written.len));
        if (at < 8) return false;
        at -= 8;
    } else if (begins(d->name, "movlhps")) {
        if (at < 8) return false;
        at -= 8;
    } else if (begins(d->name, "movhlps")) {
        at += 8;
    }
    if (at >= src.len) { /* extended */
        if (begins(d->name, "movsx")) return copy(f, part(src, src.len - 1, 1));
        return constant(f, 0);
    }
    return copy(f, part(src, at, f->written.len));
}

static bool is_move(const char *name) {
    static const char *const others[] = {"movmsk",    "movshdup", "movsldup", "movddup",
                                         "movdir64b", "movbe",    "movq2",    "movdq2"};
    if (name[0] == 'v') name++;
    if (!begins(name, "mov")) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (begins(name, others[i])) return false;
    return true;
}

static bool condition_holds(unsigned cc, uint64_t flags) {
    bool cf = flags & 1, pf = flags & 4, zf = flags & 64, sf = flags & 128, of = flags & 2048, is = false;
    switch (cc >> 1) {
    case 0: is = of; break;
    case 1: is = cf; break;
    case 2: is = zf; break;
    case 3: is = cf || zf; break;
    case 4: is = sf; break;
    case 5: is = pf; break;
    case 6: is = sf != of; break;
    case 7: is = zf || sf != of; break;
    }
    return is != (cc & 1);
}

/* Two halves of eight bytes out of two sources. */
static bool unpack(const struct decoded *d, const struct machine *m, uint64_t at, struct flow *f) {
    size_t n = d->in.operand_count_visible;
    struct place first, second;
    if (!place_of(d, &d->op[n - 2], m, &first) || !place_of(d, &d->op[n - 1], m, &second)) return false;
    return copy(f, at < 8 ? part(first, at, f->written.len) : part(second, at - 8, f->written.len));
}

static bool string(const struct decoded *d, const struct machine *m, struct flow *f) {
    uint64_t element = d->op[0].size / 8;
    if (begins(d->name, "stos")) {
        uint64_t at = (f->written.addr - m->gpr[RDI]) % element;
        struct place a = {.is_register = true, .reg = RAX, .len = element};
        return copy(f, part(a, at, f->written.len));
    }
    return copy(f, (struct place){.addr = m->gpr[RSI] + (f->written.addr - m->gpr[RDI]), .len = f->written.len});
}

static bool address_sum(const struct decoded *d, const struct machine *m, struct flow *f) {
    const ZydisDecodedOperand *o = &d->op[1];
    const ZydisRegister parts[] = {o->mem.base, o->mem.index};
    f->kind = FLOW_COMPUTED;
    for (size_t i = 0; i < 2; i++) {
        uint32_t n =
            parts[i] == ZYDIS_REGISTER_NONE || parts[i] == ZYDIS_REGISTER_RIP ? NO_REGISTER : number_of(parts[i]);
        if (n < 16) add_input(f, (struct place){.is_register = true, .reg = n, .len = 8});
    }
    return f->n_inputs ? true : constant(f, address_of(d, o, m));
}

static bool is_zeroing(const struct decoded *d) {
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_VPXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_VXORPS:
    case ZYDIS_MNEMONIC_XORPD:
    case ZYDIS_MNEMONIC_VXORPD: break;
    default: return false;
    }
    const ZydisDecodedOperand *a = &d->op[d->in.operand_count_visible - 2], *b = a + 1;
    return a->type == ZYDIS_OPERAND_TYPE_REGISTER && b->type == a->type && a->reg.value == b->reg.value;
}

/* Whatever it reads. Vector instructions work lane by lane, as a rule: the same bytes of each input. */
static bool computed(const struct decoded *d, const struct machine *m, uint64_t at, struct flow *f) {
    f->kind = FLOW_COMPUTED;
    for (size_t i = 0; i < d->in.operand_count; i++) {
        const ZydisDecodedOperand *o = &d->op[i];
        struct place p;
        if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) || !place_of(d, o, m, &p)) continue;
        bool stack = p.is_register && p.reg == RSP && o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
        if (stack) continue;
        bool lanes = p.len > 8 && at + f->written.len <= p.len;
        add_input(f, lanes ? part(p, at, f->written.len) : p);
    }
    return true;
}

static bool exchange(const struct decoded *d, const struct machine *m, size_t written, uint64_t at, struct flow *f) {
    struct place other;
    return place_of(d, &d->op[written ? 0 : 1], m, &other) && copy(f, part(other, at, f->written.len));
}

static bool is_of_processor(const struct decoded *d) {
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_RDPID:
    case ZYDIS_MNEMONIC_XGETBV: return true;
    default: return false;
    }
}

/* The operand number i is written, and with it f->written, which begins `at` bytes from its begin. */
static bool source(const struct decoded *d, const struct machine *m, size_t i, uint64_t at, struct flow *f) {
    struct place p;
    if (is_string(d) && !f->written.is_register) return string(d, m, f);
    if (is_of_processor(d)) {
        f->kind = FLOW_PROCESSOR;
        return true;
    }
    bool is_general = f->written.is_register && f->written.reg < 16;
    if (is_general && d->op[i].size == 32 && at >= 4 && !begins(d->name, "cmov")) return constant(f, 0);
    if (is_move(d->name)) return move(d, m, at, f);
    if (begins(d->name, "cmov")) return condition_holds(d->in.opcode & 15, m->rflags) && move(d, m, at, f);
    if (is_zeroing(d)) return constant(f, 0);
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_PUNPCKLQDQ:
    case ZYDIS_MNEMONIC_VPUNPCKLQDQ:
    case ZYDIS_MNEMONIC_UNPCKLPD:
    case ZYDIS_MNEMONIC_VUNPCKLPD: return at < 16 && unpack(d, m, at, f);
    case ZYDIS_MNEMONIC_LEA: return address_sum(d, m, f);
    case ZYDIS_MNEMONIC_XCHG: return exchange(d, m, i, at, f);
    case ZYDIS_MNEMONIC_CALL: f->kind = FLOW_RETURN_ADDRESS; return true;
    case ZYDIS_MNEMONIC_PUSH:
        if (f->written.is_register) return false; /* rsp */
        if (d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return constant(f, d->op[0].imm.value.u);
        return place_of(d, &d->op[0], m, &p) && copy(f, part(p, at, f->written.len));
    case ZYDIS_MNEMONIC_POP:
        if (i != 0) return false; /* rsp */
        return copy(f, (struct place){.addr = m->gpr[RSP] + at, .len = f->written.len});
    default: return computed(d, m, at, f);
    }
}

bool flow_of(const struct machine *m, const uint8_t *bytes, size_t n, const struct place *want, struct flow *out) {
    struct decoded d;
    if (!decode(&d, bytes, n)) return false;
    *out = (struct flow){.kind = FLOW_CALL, .written = *want};
    if (d.in.meta.category == ZYDIS_CATEGORY_SYSCALL) return want->is_register && want->reg == RAX;
    for (size_t i = 0; i < d.in.operand_count; i++) {
        struct place p;
        *out = (struct flow){0};
        if (!(d.op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) || !place_of(&d, &d.op[i], m, &p)) continue;
        if (p.is_register && p.reg < 16 && p.len == 4) p.len = 8; /* the upper half becomes zero */
        if (!p.is_register) widen(&d, m, &p);
        if (!overlap(&p, want, &out->written)) continue;
        if (source(&d, m, i, begin_of(&out->written) - begin_of(&p), out)) return true;
    }
    return false;
}

void flow_text(uint64_t pc, const uint8_t *bytes, size_t n, char *text, size_t cap) {
    static const ZydisFormatterProperty plain[] = {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
                                                   ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
                                                   ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_FORMATTER_PROP_IMM_PADDING};
    struct decoded d;
    ZydisFormatter f;
    text[0] = '\0';
    if (!decode(&d, bytes, n)) return;
    ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_ATT);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        ZydisFormatterSetProperty(&f, plain[i], ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&f, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    if (!ZYAN_SUCCESS(
            ZydisFormatterFormatInstruction(&f, &d.in, d.op, d.in.operand_count_visible, text, cap, pc, NULL)))
        text[0] = '\0';
}

bool flow_is_system_call(const uint8_t *bytes, size_t n) {
    struct decoded d;
    return decode(&d, bytes, n) && d.in.meta.category == ZYDIS_CATEGORY_SYSCALL;
}

/* ---- names ---- */

const char *flow_register_name(const struct place *p) {
    size_t end = p->offset + p->len;
    int first = end <= 16 ? ZYDIS_REGISTER_XMM0 : end <= 32 ? ZYDIS_REGISTER_YMM0 : ZYDIS_REGISTER_ZMM0;
    if (p->reg < REGISTER_VECTOR) return ZydisRegisterGetString((ZydisRegister)(ZYDIS_REGISTER_RAX + (int)p->reg));
    return p->reg < REGISTERS ? ZydisRegisterGetString((ZydisRegister)(first + (int)(p->reg - REGISTER_VECTOR))) : "?";
}

bool flow_register_by_name(const char *name, struct place *out) {
    while (*name == '$' || *name == '%') name++;
    for (int r = ZYDIS_REGISTER_NONE + 1; r <= ZYDIS_REGISTER_MAX_VALUE; r++) {
        const char *text = ZydisRegisterGetString((ZydisRegister)r);
        uint32_t number = number_of((ZydisRegister)r);
        if (!text || number == NO_REGISTER || strcmp(text, name) != 0) continue;
        *out = (struct place){.is_register = true, .reg = number};
        out->offset = r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH;
        out->len = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, (ZydisRegister)r) / 8;
        return true;
    }
    return false;
}

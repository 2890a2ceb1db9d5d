/* Random sequences: a translator that looks at more than one instruction at a time (dead flags, spare registers, merged
 * address computations) must be right about every combination. Straight-line code with short conditional skips and calls;
 * rbx and r13 point to memory, r14 is an index, and nothing writes to these three or moves rsp except push and pop. */
#include <string.h>

#include "gen.h"

#define BASE_1 3
#define BASE_2 13
#define INDEX 14
#define MAX_BYTES 200 /* forms.c wants faults within 256 bytes */

static bool common(const struct form *f)
{
    switch (f->isa_ext) {
    case ZYDIS_ISA_EXT_BASE: case ZYDIS_ISA_EXT_LONGMODE: case ZYDIS_ISA_EXT_BMI1: case ZYDIS_ISA_EXT_BMI2:
    case ZYDIS_ISA_EXT_LZCNT: case ZYDIS_ISA_EXT_MOVBE: case ZYDIS_ISA_EXT_ADOX_ADCX:
        return true;
    default:
        return false;
    }
}

static bool vector(const struct form *f)
{
    switch (f->isa_ext) {
    case ZYDIS_ISA_EXT_SSE: case ZYDIS_ISA_EXT_SSE2: case ZYDIS_ISA_EXT_SSE3: case ZYDIS_ISA_EXT_SSSE3:
    case ZYDIS_ISA_EXT_SSE4: case ZYDIS_ISA_EXT_AVX: case ZYDIS_ISA_EXT_AVX2: case ZYDIS_ISA_EXT_FMA:
    case ZYDIS_ISA_EXT_X87: case ZYDIS_ISA_EXT_MMX:
        return true;
    default:
        return false;
    }
}

static bool suits(const struct form *f)
{
    if (f->privileged || f->t.a32 || f->t.gs)
        return false;
    if (f->category == ZYDIS_CATEGORY_STRINGOP || f->category == ZYDIS_CATEGORY_IOSTRINGOP ||
        f->category == ZYDIS_CATEGORY_SEGOP || f->category == ZYDIS_CATEGORY_IO || f->category == ZYDIS_CATEGORY_SYSTEM)
        return false;
    static const char *const not[] = {"div", "idiv", "enter", "leave", "ud", "hlt", "popf", "fn", "fld", "fx", "fr", "xlat",
                                      "ins", "outs", "pop fs", "pop gs", "clzero", "mov fs", "mov gs", "cmpxchg16b"};
    for (size_t i = 0; i < sizeof not / sizeof *not; i++)
        if (!strncmp(f->name, not[i], strlen(not[i])))
            return false;
    return rnd() % 10 < 7 ? common(f) : vector(f);
}

/* What a sequence may not do to its fixed registers. */
static bool keeps_registers(const struct asm_case *c, bool stack_ok)
{
    struct decoded d;
    if (!decode(c->bytes, c->len, &d))
        return false;
    for (int i = 0; i < d.insn.operand_count; i++) {
        const ZydisDecodedOperand *op = &d.ops[i];
        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM &&
            op->mem.base != ZYDIS_REGISTER_RSP)
            return false;
        if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
            continue;
        ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value);
        bool writes = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
        if (writes && (whole == ZYDIS_REGISTER_RBX || whole == ZYDIS_REGISTER_R13 || whole == ZYDIS_REGISTER_R14))
            return false;
        if (whole == ZYDIS_REGISTER_RSP && (writes || ZydisRegisterGetClass(op->reg.value) != ZYDIS_REGCLASS_GPR64)) {
            bool hidden = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
            if (!hidden || !stack_ok || d.insn.operand_width == 16) /* 16 bits would leave halves of return addresses */
                return false;
        }
        if (ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_SEGMENT && writes)
            return false;
    }
    return true;
}

static void random_insn(struct asm_case *c, bool stack_ok)
{
    static const uint8_t modes[] = {ADDR_RIP, ADDR_RIP, ADDR_BASE, ADDR_BASE_D8, ADDR_BASE_INDEX, ADDR_BASE_INDEX_D8, ADDR_ABS, ADDR_FS};
    for (;;) {
        const struct form *form = &forms[rnd() % (uint32_t)nforms];
        if (form->t.kind > ENC_VEX || !suits(form))
            continue;
        struct fields f = random_fields(&form->t, modes[rnd() % sizeof modes]);
        if (form->t.mem)
            f.rm = rnd() % 2 ? BASE_1 : BASE_2;
        f.index = INDEX;
        f.npad = rnd() % 30 ? 0 : f.npad;
        f.disp &= ~15; /* most operands aligned, or few sequences would run to their end */
        if (!make_case(form, &f, c) || c->flags & (CASE_NOPIE | CASE_ADDRESS | CASE_BITOFF) || c->vsib_bits || !keeps_registers(c, stack_ok))
            continue;
        if (c->area == AREA_RIP || c->area == AREA_FS)
            c->area_off = (uint16_t)(0x800 + 64 * (rnd() % 4));
        return;
    }
}

static size_t put_insn(const struct asm_case *c, char *text, size_t size)
{
    char one[200];
    put_code(out.code, c);
    format(c->bytes, c->len, one, sizeof one);
    return (size_t)snprintf(text, size, "%s; ", one);
}

static void emit_sequence(int number)
{
    static const char *const cc[16] = {"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"};
    struct asm_case seq = {.flags = CASE_SEQUENCE, .bitreg = NO_REG, .nmem = 2}, c;
    char text[2000] = "";
    size_t n = 0;
    int bytes = 0, skip = 0, want = 3 + (int)(rnd() % 12);

    memset(seq.mem, NO_REG, sizeof seq.mem);
    seq.mem[0] = (struct case_mem){.base = BASE_1, .index = INDEX, .scale = 1};
    seq.mem[1] = (struct case_mem){.base = BASE_2, .index = NO_REG};
    seq.code_off = out.code_size;
    out.code_size += 256;
    fprintf(out.code, "\t.p2align 8\n");
    for (int i = 0; i < want && bytes < MAX_BYTES - 40; i++) {
        int kind = (int)(rnd() % 10);
        if (kind == 0 && !skip) { /* over the next few */
            const char *cond = cc[rnd() % 16];
            skip = 1 + (int)(rnd() % 3);
            fprintf(out.code, "\t%s j%s .Ls%d_%d\n", rnd() % 2 ? "{disp32}" : "", cond, number, i + skip);
            n += (size_t)snprintf(text + n, sizeof text - n, "j%s +%d; ", cond, skip);
            skip += i;
            bytes += 6;
            continue;
        }
        if (kind == 1) { /* a function of one instruction */
            random_insn(&c, false);
            fprintf(out.code, "\tcall 1f\n\tjmp 2f\n1:\n");
            n += (size_t)snprintf(text + n, sizeof text - n, "call { ");
            n += put_insn(&c, text + n, sizeof text - n);
            n += (size_t)snprintf(text + n, sizeof text - n, "} ");
            fprintf(out.code, "\tret\n2:\n");
            bytes += c.len + 8;
        } else {
            random_insn(&c, !skip);
            n += put_insn(&c, text + n, sizeof text - n);
            bytes += c.len;
        }
        seq.seq_insns++;
        if (skip && skip == i) {
            fprintf(out.code, ".Ls%d_%d:\n", number, i);
            skip = 0;
        }
    }
    if (skip)
        fprintf(out.code, ".Ls%d_%d:\n", number, skip);
    fprintf(out.code, "\tjmp form_done\n");
    put_case(&seq, "sequence", text);
}

void emit_sequences(int n)
{
    out.code_size = (out.code_size + 255) & ~255u; /* form_code is aligned accordingly */
    for (int i = 0; i < n; i++)
        emit_sequence(i);
}

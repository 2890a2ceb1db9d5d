/* Prints the decode table (decode_table.h) on stdout.
 *
 * For every opcode space, opcode, prefix/W slot, modrm.reg and kind of modrm (register or memory) it decodes one instruction
 * with Zydis, derives a descriptor from the result, and keeps the descriptor only if the table's own code
 * (engine/decode_desc.h) then gives exactly what Zydis gives for all registers, addressing forms, immediates and prefixes
 * tried. Whatever cannot be described gets no entry and stays with Zydis. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/decode.c"
#include "engine/decode_desc.h"

/* Encoding */

struct place {
    unsigned space, slot;
    uint8_t opcode;
};

struct form {
    int prefix;       /* one more legacy prefix, or -1 */
    int rex;          /* R X B, or -1 for no REX at all; W comes from the slot */
    unsigned vvvv;    /* register */
    int modrm;        /* -1: none */
    uint8_t fill[16]; /* sib, displacement, immediate */
};

static const uint8_t mandatory_byte[] = {0, 0x66, 0xf3, 0xf2};

static bool slot_has_w(const struct place *p) { return p->slot & 1; }

/* Writes DECODE_WINDOW bytes; false if the form does not exist there (no REX, but W). */
static bool encode(uint8_t *b, const struct place *p, const struct form *f) {
    unsigned n = 0;
    memset(b, 0, DECODE_WINDOW);
    if (f->prefix >= 0) b[n++] = (uint8_t)f->prefix;
    if (p->space >= SPACE_VEX) {
        if (f->rex < 0) return false;
        b[n++] = 0xc4;
        b[n++] = (uint8_t)((~f->rex & 7) << 5 | (p->space - SPACE_VEX + 1));
        b[n++] = (uint8_t)((p->slot & 1) << 7 | (~f->vvvv & 15) << 3 | p->slot >> 1);
    } else {
        if (p->slot >> 1) b[n++] = mandatory_byte[p->slot >> 1];
        if (f->rex < 0 && slot_has_w(p)) return false;
        if (f->rex >= 0) b[n++] = (uint8_t)(0x40 | slot_has_w(p) << 3 | f->rex);
        if (p->space != SPACE_ONE_BYTE) b[n++] = 0x0f;
        if (p->space == SPACE_0F38) b[n++] = 0x38;
        if (p->space == SPACE_0F3A) b[n++] = 0x3a;
    }
    b[n++] = p->opcode;
    if (f->modrm >= 0) b[n++] = (uint8_t)f->modrm;
    memcpy(b + n, f->fill, MIN(sizeof(f->fill), DECODE_WINDOW - n));
    return true;
}

#define PC 0x7f0012345678ull

/* Decodes a form with Zydis; false also if the bytes mean some other place of the table. */
static bool ask_zydis(struct insn *in, const struct place *p, const struct form *f) {
    uint8_t b[DECODE_WINDOW];
    struct scan s;
    if (!encode(b, p, f) || !decode_insn_zydis(in, b, sizeof(b), PC)) return false;
    return scan_opcode(&s, b) && s.space == p->space && s.slot == p->slot && s.opcode == p->opcode &&
           s.opcode_off == in->opcode_off;
}

static bool same_insn(const struct insn *a, const struct insn *b) {
#define SAME(field) (a->field == b->field)
    return SAME(pc) && SAME(target) && SAME(imm) && SAME(cls) && SAME(len) && SAME(encoding) && SAME(opcode) &&
           SAME(cc) && SAME(opcode_off) && SAME(modrm_off) && SAME(sib_off) && SAME(disp_off) && SAME(disp_size) &&
           SAME(imm_off) && SAME(imm_size) && SAME(rex_off) && SAME(prefix_len) && SAME(modrm) && SAME(has_rex) &&
           SAME(rip_rel) && SAME(eip_rel) && SAME(has_mem) && SAME(rep) && SAME(lock) && SAME(vsib) && SAME(seg) &&
           SAME(gpr_read) && SAME(gpr_write) && SAME(gpr_kill) && SAME(flags_read) && SAME(flags_write) &&
           SAME(flags_kill) && SAME(load_size) && SAME(store_size) && SAME(push_size) && SAME(pop_size);
#undef SAME
}

/* A descriptor may give up where Zydis finds an instruction, but whatever it says must be what Zydis says. */
static bool agrees(const struct insn_desc *d, const struct place *p, const struct form *f) {
    uint8_t b[DECODE_WINDOW];
    struct scan s;
    struct insn mine, theirs;
    if (!encode(b, p, f)) return true;
    if (!scan_opcode(&s, b)) return true;
    if (s.space != p->space || s.slot != p->slot || s.opcode != p->opcode) return true;
    if (!fill_from_desc(&mine, d, &s, b, PC)) return true;
    return decode_insn_zydis(&theirs, b, sizeof(b), PC) && same_insn(&mine, &theirs);
}

/* Verification */

enum kind { NO_MODRM, MEMORY, REGISTER };
static const enum kind kinds_with_modrm[] = {MEMORY, REGISTER};

static bool agrees_over_vvvv(const struct insn_desc *d, const struct place *p, struct form f) {
    unsigned n = p->space >= SPACE_VEX ? 16 : 1;
    for (f.vvvv = 0; f.vvvv < n; f.vvvv++)
        if (!agrees(d, p, &f)) return false;
    return true;
}

static bool agrees_over_rex(const struct insn_desc *d, const struct place *p, struct form f) {
    for (f.rex = -1; f.rex < 8; f.rex++)
        if (!agrees(d, p, &f)) return false;
    return true;
}

static bool agrees_over_immediates(const struct insn_desc *d, const struct place *p, struct form f) {
    static const uint8_t values[] = {0, 1, 0x1f, 0x20, 0x3f, 0x40, 0x7f, 0x80, 0xe0, 0xff};
    for (unsigned i = 0; i < ARRAY_LEN(values); i++) {
        memset(f.fill, values[i], sizeof(f.fill));
        if (!agrees(d, p, &f)) return false;
        memset(f.fill + 1, 0, sizeof(f.fill) - 1);
        if (!agrees(d, p, &f)) return false;
    }
    return true;
}

static bool agrees_over_prefixes(const struct insn_desc *d, const struct place *p, struct form f) {
    static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67, 0xf0};
    for (unsigned i = 0; i < ARRAY_LEN(prefixes); i++) {
        f.prefix = prefixes[i];
        if (!agrees_over_rex(d, p, f)) return false;
    }
    return true;
}

static bool agrees_over_registers(const struct insn_desc *d, const struct place *p, struct form f, unsigned reg) {
    for (unsigned rm = 0; rm < 8; rm++) {
        f.modrm = (int)(0xc0 | reg << 3 | rm);
        if (!agrees_over_rex(d, p, f)) return false;
    }
    return true;
}

static bool agrees_over_addresses(const struct insn_desc *d, const struct place *p, struct form f, unsigned reg) {
    static const uint8_t sibs[] = {0x00, 0x24, 0x25, 0x65, 0xe4, 0xfd};
    for (unsigned mod = 0; mod < 3; mod++)
        for (unsigned rm = 0; rm < 8; rm++)
            for (unsigned i = 0; i < (rm == 4 ? ARRAY_LEN(sibs) : 1); i++) {
                f.modrm = (int)(mod << 6 | reg << 3 | rm);
                f.fill[0] = sibs[i];
                for (f.rex = -1; f.rex < 8; f.rex += 4)
                    if (!agrees(d, p, &f)) return false;
            }
    return true;
}

static bool agrees_everywhere(const struct insn_desc *d, const struct place *p, enum kind kind, unsigned reg) {
    struct form f = {.prefix = -1, .rex = 0, .modrm = -1, .fill = {0x11, 0x92, 0x13, 0x94, 0x15, 0x16, 0x17, 0x98}};
    if (kind == REGISTER) f.modrm = (int)(0xc2 | reg << 3);
    if (kind == MEMORY) f.modrm = (int)(0x02 | reg << 3);
    if (!agrees_over_rex(d, p, f) || !agrees_over_vvvv(d, p, f) || !agrees_over_immediates(d, p, f) ||
        !agrees_over_prefixes(d, p, f))
        return false;
    if (kind == REGISTER) return agrees_over_registers(d, p, f, reg);
    if (kind == MEMORY) return agrees_over_addresses(d, p, f, reg);
    return true;
}

/* Derivation */

static uint8_t role_of(const struct insn *in, unsigned r) {
    return (uint8_t)((in->gpr_read >> r & 1 ? ROLE_READ : 0) | (in->gpr_write >> r & 1 ? ROLE_WRITE : 0) |
                     (in->gpr_kill >> r & 1 ? ROLE_KILL : 0));
}

/* What does not depend on registers, prefixes and the place in memory. */
static void common_desc(struct insn_desc *d, const struct insn *in) {
    memset(d, 0, sizeof(*d)); /* compared as bytes later */
    d->insn.cls = in->cls;
    d->insn.disp_size = in->modrm_off ? 0 : in->disp_size;
    d->insn.imm_size = in->imm_size;
    d->insn.has_mem = in->has_mem;
    d->insn.rep = in->rep;
    d->insn.lock = in->lock;
    d->insn.gpr_read = in->gpr_read;
    d->insn.gpr_write = in->gpr_write;
    d->insn.gpr_kill = in->gpr_kill;
    d->insn.flags_read = in->flags_read;
    d->insn.flags_write = in->flags_write;
    d->insn.flags_kill = in->flags_kill;
    d->insn.load_size = in->load_size;
    d->insn.store_size = in->store_size;
    d->insn.push_size = in->push_size;
    d->insn.pop_size = in->pop_size;
    if (in->modrm_off) d->props |= DESC_MODRM;
    if (in->has_mem) d->props |= DESC_MEM;
    if (!in->modrm_off && in->disp_size) d->props |= DESC_MOFFS;
    if (in->cls == INSN_JCC) d->props |= DESC_IS_JCC;
    if (in->imm_size && !in->rip_rel && in->target == PC + in->len + (uint64_t)in->imm) d->props |= DESC_BRANCH;
}

static void keep_implicit(struct insn_desc *d) {
    d->insn.gpr_read &= 0xff;
    d->insn.gpr_write &= 0xff;
    d->insn.gpr_kill &= 0xff;
}

/* The registers of the fields are all among r8..r15, the implicit ones are not (with a few exceptions, which drop out). */
static void derive_roles(struct insn_desc *d, const struct insn *in, enum kind kind, unsigned reg, unsigned rm,
                         unsigned vvvv) {
    if (kind != NO_MODRM) d->reg = role_of(in, 8 + reg);
    if (kind == REGISTER) d->rm = role_of(in, 8 + rm);
    if (vvvv) d->vvvv = role_of(in, vvvv);
    keep_implicit(d);
}

static void derive_opcode_register(struct insn_desc *d, const struct insn *in, const struct place *p, struct form f) {
    struct insn without_b;
    f.rex = 0;
    if (!ask_zydis(&without_b, p, &f)) return;
    if (without_b.gpr_read == in->gpr_read && without_b.gpr_write == in->gpr_write &&
        without_b.gpr_kill == in->gpr_kill)
        return;
    d->rm = role_of(in, 8 + (p->opcode & 7));
    keep_implicit(d);
}

/* Things that one decoding does not show: try them until the descriptor holds. */
static bool complete(struct insn_desc *d, const struct place *p, enum kind kind, unsigned reg) {
    static const uint16_t imm_props[] = {0, DESC_UNSIGNED, DESC_SHIFT31, DESC_SHIFT63};
    struct insn_desc base;
    memcpy(&base, d, sizeof(base));
    for (unsigned i = 0; i < (d->insn.imm_size ? ARRAY_LEN(imm_props) : 1); i++)
        for (unsigned bytes = 0; bytes < 4; bytes++) {
            memcpy(d, &base, sizeof(*d));
            d->props |= imm_props[i];
            if (bytes & 1) d->reg |= ROLE_BYTE;
            if (bytes & 2) d->rm |= ROLE_BYTE;
            if (agrees_everywhere(d, p, kind, reg)) return true;
        }
    return false;
}

static void derive_prefix_props(struct insn_desc *d, const struct place *p, struct form f) {
    struct insn in;
    f.prefix = 0x64;
    if (ask_zydis(&in, p, &f) && in.seg == 0x64) d->props |= DESC_SEGMENT;
    f.prefix = 0xf0;
    if (ask_zydis(&in, p, &f) && in.lock) d->props |= DESC_LOCKABLE;
}

/* Classes that are common enough, or that code branches on at once. */
static bool wanted(const struct insn *in) { return in->cls >= INSN_PLAIN && in->cls <= INSN_SYSCALL; }

static bool derive(struct insn_desc *d, const struct place *p, enum kind kind, unsigned reg) {
    struct form f = {.prefix = -1, .rex = 7, .modrm = -1, .fill = {0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}};
    unsigned rm = reg == 2 ? 3 : 2;
    if (kind == REGISTER) f.modrm = (int)(0xc0 | reg << 3 | rm);
    if (kind == MEMORY) f.modrm = (int)(reg << 3 | rm);
    if (p->space >= SPACE_VEX) f.vvvv = 15;
    if (reg == 7 && f.vvvv) f.vvvv = 14;

    struct insn in;
    bool found = ask_zydis(&in, p, &f);
    if (!found && f.vvvv) {
        f.vvvv = 0;
        found = ask_zydis(&in, p, &f);
    }
    if (!found || !wanted(&in) || (in.modrm_off != 0) != (kind != NO_MODRM) || in.has_mem != (kind == MEMORY))
        return false;

    common_desc(d, &in);
    if (p->space >= SPACE_VEX && !f.vvvv) d->props |= DESC_NO_VVVV;
    if (kind == MEMORY && !(role_of(&in, 8 + rm) & ROLE_READ)) return false;
    derive_prefix_props(d, p, f);
    if (kind == NO_MODRM)
        derive_opcode_register(d, &in, p, f);
    else
        derive_roles(d, &in, kind, reg, rm, f.vvvv);
    if (complete(d, p, kind, reg)) return true;

    /* 90: a nop, but xchg with r8. */
    f.rex = 0;
    if (kind != NO_MODRM || !ask_zydis(&in, p, &f)) return false;
    common_desc(d, &in);
    d->props |= DESC_NO_REX_B;
    return complete(d, p, kind, reg);
}

/* The table */

#define MAX_DESCS 0x1000
static struct insn_desc descs[MAX_DESCS];
static unsigned desc_count = 1; /* 0 is none */

static uint16_t variants[ENTRY_INDEX + 1];
static unsigned variant_count = 16; /* the first 16 are those of entry 0: none */

static uint16_t legacy_rows[SPACE_VEX * 256 + 1][LEGACY_SLOTS], vex_rows[3 * 256 + 1][VEX_SLOTS];
static unsigned legacy_row_count = 1, vex_row_count = 1; /* row 0 is empty */
static uint16_t row_of[SPACES][256];

static uint16_t intern_desc(const struct insn_desc *d) {
    for (unsigned i = 1; i < desc_count; i++)
        if (memcmp(&descs[i], d, sizeof(*d)) == 0) return (uint16_t)i;
    if (desc_count == MAX_DESCS) abort();
    memcpy(&descs[desc_count], d, sizeof(*d));
    return (uint16_t)desc_count++;
}

static uint16_t intern_variants(const uint16_t *v, unsigned n) {
    for (unsigned i = 0; i + n <= variant_count; i++)
        if (memcmp(&variants[i], v, n * sizeof(*v)) == 0) return (uint16_t)i;
    if (variant_count + n > ARRAY_LEN(variants)) abort();
    memcpy(&variants[variant_count], v, n * sizeof(*v));
    variant_count += n;
    return (uint16_t)(variant_count - n);
}

static uint16_t find_variant(const struct place *p, enum kind kind, unsigned reg) {
    struct insn_desc d;
    return derive(&d, p, kind, reg) ? intern_desc(&d) : 0;
}

static bool all_equal(const uint16_t *v, unsigned n) {
    for (unsigned i = 1; i < n; i++)
        if (v[i] != v[0]) return false;
    return true;
}

static uint16_t find_entry(const struct place *p) {
    uint16_t v[16], always = find_variant(p, NO_MODRM, 0);
    if (always) return ENTRY_ALWAYS | intern_variants(&always, 1);
    for (unsigned k = 0; k < 2; k++)
        for (unsigned reg = 0; reg < 8; reg++) v[8 * k + reg] = find_variant(p, kinds_with_modrm[k], reg);
    if (all_equal(v, 16) && v[0] == 0) return 0;
    if (!all_equal(v, 8) || !all_equal(v + 8, 8)) return ENTRY_BY_MOD_REG | intern_variants(v, 16);
    uint16_t by_mod[2] = {v[0], v[8]};
    return ENTRY_BY_MOD | intern_variants(by_mod, 2);
}

static uint16_t intern_row(uint16_t *rows, unsigned *count, unsigned slots, const uint16_t *row) {
    for (unsigned i = 0; i < *count; i++)
        if (memcmp(&rows[i * slots], row, slots * sizeof(*row)) == 0) return (uint16_t)i;
    memcpy(&rows[*count * slots], row, slots * sizeof(*row));
    return (uint16_t)(*count)++;
}

static void fill_space(unsigned space) {
    bool vex = space >= SPACE_VEX;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        uint16_t row[VEX_SLOTS];
        for (unsigned slot = 0; slot < (vex ? VEX_SLOTS : LEGACY_SLOTS); slot++)
            row[slot] = find_entry(&(struct place){.space = space, .slot = slot, .opcode = (uint8_t)opcode});
        row_of[space][opcode] = vex ? intern_row(vex_rows[0], &vex_row_count, VEX_SLOTS, row)
                                    : intern_row(legacy_rows[0], &legacy_row_count, LEGACY_SLOTS, row);
    }
}

/* Printing */

static void print_numbers(const uint16_t *v, unsigned n) {
    for (unsigned i = 0; i < n; i++) printf("%s%u,", i % 16 ? "" : "\n    ", v[i]);
}

static void print_rows(const char *name, const uint16_t *rows, unsigned count, unsigned slots) {
    printf("static const uint16_t %s[%u][%u] = {\n", name, count, slots);
    for (unsigned i = 0; i < count; i++) {
        printf("    {");
        for (unsigned s = 0; s < slots; s++) printf("%#x,", rows[i * slots + s]);
        printf("},\n");
    }
    printf("};\n");
}

static void print_row_of(const char *name, unsigned first, unsigned spaces) {
    printf("static const uint16_t %s[%u][256] = {", name, spaces);
    for (unsigned s = first; s < first + spaces; s++) {
        printf("{");
        print_numbers(row_of[s], 256);
        printf("},\n");
    }
    printf("};\n");
}

static void print_descs(void) {
    printf("static const struct insn_desc descs[%u] = {\n", desc_count);
    for (unsigned i = 0; i < desc_count; i++) {
        const struct insn_desc *d = &descs[i];
        const struct insn *in = &d->insn;
        printf("    {.props = %#x, .reg = %u, .rm = %u, .vvvv = %u, .insn = {.cls = %u", d->props, d->reg, d->rm,
               d->vvvv, in->cls);
#define PRINT(field) \
    if (in->field) printf(", ." #field " = %u", in->field)
        PRINT(disp_size);
        PRINT(imm_size);
        PRINT(has_mem);
        PRINT(rep);
        PRINT(lock);
        PRINT(gpr_read);
        PRINT(gpr_write);
        PRINT(gpr_kill);
        PRINT(flags_read);
        PRINT(flags_write);
        PRINT(flags_kill);
        PRINT(load_size);
        PRINT(store_size);
        PRINT(push_size);
        PRINT(pop_size);
#undef PRINT
        printf("}},\n");
    }
    printf("};\n");
}

int main(void) {
    for (unsigned space = 0; space < SPACES; space++) fill_space(space);
    size_t bytes = desc_count * sizeof(descs[0]) + variant_count * 2 + SPACES * 256 * 2 +
                   legacy_row_count * LEGACY_SLOTS * 2 + vex_row_count * VEX_SLOTS * 2;
    printf("/* Generated by tools/gen_decode.c: %u descriptors, %zu bytes in all. */\n", desc_count - 1, bytes);
    print_descs();
    printf("static const uint16_t variants[%u] = {", variant_count);
    print_numbers(variants, variant_count);
    printf("};\n");
    print_rows("legacy_rows", legacy_rows[0], legacy_row_count, LEGACY_SLOTS);
    print_rows("vex_rows", vex_rows[0], vex_row_count, VEX_SLOTS);
    print_row_of("legacy_row", 0, SPACE_VEX);
    print_row_of("vex_row", SPACE_VEX, SPACES - SPACE_VEX);
    return 0;
}

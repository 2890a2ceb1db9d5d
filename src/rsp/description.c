/* The registers of a target as gdb sees them. */
#include "rsp/description.h"

#include <cpuid.h>
#include <stdio.h>
#include <string.h>

enum feature { CORE, SSE, LINUX, SEGMENTS, AVX, AVX512, PKEYS, FEATURES };
enum part { X87_PART = 0, SSE_PART, AVX_PART, K_PART = 5, ZMM_PART, ZMM16_PART, PKRU_PART = 9 };

static const struct {
    const char *name;
    uint64_t needs; /* of xcr0 */
    const char *types;
} features[FEATURES] = {
    [CORE] = {"org.gnu.gdb.i386.core", 0,
              "<flags id=\"i386_eflags\" size=\"4\">"
              "<field name=\"\" start=\"22\" end=\"31\"/>"
              "<field name=\"CF\" start=\"0\" end=\"0\"/><field name=\"\" start=\"1\" end=\"1\"/>"
              "<field name=\"PF\" start=\"2\" end=\"2\"/><field name=\"AF\" start=\"4\" end=\"4\"/>"
              "<field name=\"ZF\" start=\"6\" end=\"6\"/><field name=\"SF\" start=\"7\" end=\"7\"/>"
              "<field name=\"TF\" start=\"8\" end=\"8\"/><field name=\"IF\" start=\"9\" end=\"9\"/>"
              "<field name=\"DF\" start=\"10\" end=\"10\"/><field name=\"OF\" start=\"11\" end=\"11\"/>"
              "<field name=\"NT\" start=\"14\" end=\"14\"/><field name=\"RF\" start=\"16\" end=\"16\"/>"
              "<field name=\"VM\" start=\"17\" end=\"17\"/><field name=\"AC\" start=\"18\" end=\"18\"/>"
              "<field name=\"VIF\" start=\"19\" end=\"19\"/><field name=\"VIP\" start=\"20\" end=\"20\"/>"
              "<field name=\"ID\" start=\"21\" end=\"21\"/></flags>"},
    [SSE] = {"org.gnu.gdb.i386.sse", 0,
             "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>"
             "<vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
             "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/><vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
             "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/><vector id=\"v2i64\" type=\"int64\" count=\"2\"/>"
             "<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/>"
             "<field name=\"v2_double\" type=\"v2d\"/><field name=\"v16_int8\" type=\"v16i8\"/>"
             "<field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" type=\"v4i32\"/>"
             "<field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/></union>"
             "<flags id=\"i386_mxcsr\" size=\"4\">"
             "<field name=\"IE\" start=\"0\" end=\"0\"/><field name=\"DE\" start=\"1\" end=\"1\"/>"
             "<field name=\"ZE\" start=\"2\" end=\"2\"/><field name=\"OE\" start=\"3\" end=\"3\"/>"
             "<field name=\"UE\" start=\"4\" end=\"4\"/><field name=\"PE\" start=\"5\" end=\"5\"/>"
             "<field name=\"DAZ\" start=\"6\" end=\"6\"/><field name=\"IM\" start=\"7\" end=\"7\"/>"
             "<field name=\"DM\" start=\"8\" end=\"8\"/><field name=\"ZM\" start=\"9\" end=\"9\"/>"
             "<field name=\"OM\" start=\"10\" end=\"10\"/><field name=\"UM\" start=\"11\" end=\"11\"/>"
             "<field name=\"PM\" start=\"12\" end=\"12\"/><field name=\"FZ\" start=\"15\" end=\"15\"/></flags>"},
    [LINUX] = {"org.gnu.gdb.i386.linux", 0, ""},
    [SEGMENTS] = {"org.gnu.gdb.i386.segments", 0, ""},
    [AVX] = {"org.gnu.gdb.i386.avx", 1 << AVX_PART, ""},
    [AVX512] = {"org.gnu.gdb.i386.avx512", 7 << K_PART | 1 << AVX_PART,
                "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>"
                "<vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
                "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/><vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
                "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/><vector id=\"v2i64\" type=\"int64\" count=\"2\"/>"
                "<union id=\"vec128\">"
                "<field name=\"v4_float\" type=\"v4f\"/><field name=\"v2_double\" type=\"v2d\"/>"
                "<field name=\"v16_int8\" type=\"v16i8\"/><field name=\"v8_int16\" type=\"v8i16\"/>"
                "<field name=\"v4_int32\" type=\"v4i32\"/><field name=\"v2_int64\" type=\"v2i64\"/>"
                "<field name=\"uint128\" type=\"uint128\"/></union>"
                "<vector id=\"v2ui128\" type=\"uint128\" count=\"2\"/>"},
    [PKEYS] = {"org.gnu.gdb.i386.pkeys", 1ull << PKRU_PART, ""},
};

/* Where a row's registers are: in a member of `struct registers`, or in a part of the XSAVE area. */
enum place { MEMBER, XSAVE, FTAG };

/* One row: registers of one kind, numbered on; `names` has one word for each, or a format and `first`. */
static const struct row {
    uint8_t feature, count;
    uint16_t bits;
    const char *names;
    int first;
    const char *type, *group; /* group NULL: gdb's choice */
    uint8_t place, part;
    uint16_t offset, stride, width; /* of the value in its place; less than the register has: zeros above */
} rows[] = {
#define IN_REGISTERS(member) MEMBER, 0, offsetof(struct registers, member)
    {CORE, 6, 64, "rax rbx rcx rdx rsi rdi", 0, "int64", NULL, IN_REGISTERS(gpr), 8, 8},
    {CORE, 2, 64, "rbp rsp", 0, "data_ptr", NULL, IN_REGISTERS(gpr[6]), 8, 8},
    {CORE, 8, 64, "r%d", 8, "int64", NULL, IN_REGISTERS(gpr[8]), 8, 8},
    {CORE, 1, 64, "rip", 0, "code_ptr", NULL, IN_REGISTERS(rip), 8, 8},
    {CORE, 1, 32, "eflags", 0, "i386_eflags", NULL, IN_REGISTERS(eflags), 8, 4},
    {CORE, 6, 32, "cs ss ds es fs gs", 0, "int32", NULL, IN_REGISTERS(cs), 4, 4},
    {CORE, 8, 80, "st%d", 0, "i387_ext", NULL, XSAVE, X87_PART, 32, 16, 10},
    {CORE, 2, 32, "fctrl fstat", 0, "int", "float", XSAVE, X87_PART, 0, 2, 2},
    {CORE, 1, 32, "ftag", 0, "int", "float", FTAG, X87_PART, 4, 1, 1},
    {CORE, 1, 32, "fiseg", 0, "int", "float", XSAVE, X87_PART, 12, 4, 2},
    {CORE, 1, 32, "fioff", 0, "int", "float", XSAVE, X87_PART, 8, 4, 4},
    {CORE, 1, 32, "foseg", 0, "int", "float", XSAVE, X87_PART, 20, 4, 2},
    {CORE, 1, 32, "fooff", 0, "int", "float", XSAVE, X87_PART, 16, 4, 4},
    {CORE, 1, 32, "fop", 0, "int", "float", XSAVE, X87_PART, 6, 2, 2},
    {SSE, 16, 128, "xmm%d", 0, "vec128", NULL, XSAVE, SSE_PART, 160, 16, 16},
    {SSE, 1, 32, "mxcsr", 0, "i386_mxcsr", "vector", XSAVE, SSE_PART, 24, 4, 4},
    {LINUX, 1, 64, "orig_rax", 0, "int", "system", IN_REGISTERS(orig_rax), 8, 8},
    {SEGMENTS, 2, 64, "fs_base gs_base", 0, "int", NULL, IN_REGISTERS(fs_base), 8, 8},
    {AVX, 16, 128, "ymm%dh", 0, "uint128", NULL, XSAVE, AVX_PART, 0, 16, 16},
    {AVX512, 16, 128, "xmm%d", 16, "vec128", NULL, XSAVE, ZMM16_PART, 0, 64, 16},
    {AVX512, 16, 128, "ymm%dh", 16, "uint128", NULL, XSAVE, ZMM16_PART, 16, 64, 16},
    {AVX512, 8, 64, "k%d", 0, "uint64", NULL, XSAVE, K_PART, 0, 8, 8},
    {AVX512, 16, 256, "zmm%dh", 0, "v2ui128", NULL, XSAVE, ZMM_PART, 0, 32, 32},
    {AVX512, 16, 256, "zmm%dh", 16, "v2ui128", NULL, XSAVE, ZMM16_PART, 32, 64, 32},
    {PKEYS, 1, 32, "pkru", 0, "int", NULL, XSAVE, PKRU_PART, 0, 4, 4},
};
#define ROWS (sizeof rows / sizeof *rows)
_Static_assert(offsetof(struct registers, gs_base) == offsetof(struct registers, fs_base) + 8, "segment bases");
_Static_assert(offsetof(struct registers, gpr[GDB_RSP]) == offsetof(struct registers, gpr[GDB_RBP]) + 8,
               "order of gdb");
_Static_assert(offsetof(struct registers, gs) == offsetof(struct registers, cs) + 20, "segments");

#define XSTATE_BV 512 /* which parts are not in their initial state */
#define EXTENDED 576  /* behind the legacy area and the header */

/* ---- which there are ---- */

static void find_parts(struct description *d) {
    /* As on the first processors that had them; each processor tells its own. */
    static const uint32_t usual[XSAVE_PARTS][2] = {{0, 160},   {160, 256},  {576, 256},   {960, 64}, {1024, 64},
                                                   {1088, 64}, {1152, 512}, {1664, 1024}, {0, 0},    {2688, 8}};
    for (unsigned i = 0; i < XSAVE_PARTS; i++) {
        unsigned size = 0, offset = 0, c, e;
        d->parts[i].offset = usual[i][0];
        d->parts[i].size = usual[i][1];
        if (i >= AVX_PART && __get_cpuid_count(0xd, i, &size, &offset, &c, &e) && size >= usual[i][1] &&
            offset >= EXTENDED) {
            d->parts[i].offset = offset;
            d->parts[i].size = size;
        }
    }
}

void describe(struct description *d, uint64_t xcr0) {
    *d = (struct description){.xcr0 = xcr0};
    find_parts(d);
    for (unsigned r = 0; r < ROWS; r++) {
        uint64_t needs = features[rows[r].feature].needs;
        if ((xcr0 & needs) != needs) continue;
        for (unsigned i = 0; i < rows[r].count && d->n < DESCRIBED_MAX; i++)
            d->regs[d->n++] = (struct described_reg){(uint8_t)r, (uint8_t)i};
    }
}

static void name_of(const struct row *row, unsigned index, char name[16]) {
    if (strchr(row->names, '%')) {
        const char *mark = strchr(row->names, '%');
        snprintf(name, 16, "%.*s%d%s", (int)(mark - row->names), row->names, row->first + (int)index, mark + 2);
        return;
    }
    const char *p = row->names;
    while (index--) p = strchr(p, ' ') + 1;
    snprintf(name, 16, "%.*s", (int)strcspn(p, " "), p);
}

void description_xml(const struct description *d, struct out *o) {
    out_str(o, "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target version=\"1.0\">\n"
               "<architecture>i386:x86-64</architecture>\n<osabi>GNU/Linux</osabi>\n");
    int feature = -1;
    for (unsigned n = 0; n < d->n; n++) {
        const struct row *row = &rows[d->regs[n].home];
        char name[16];
        if (row->feature != feature) {
            if (feature >= 0) out_str(o, "</feature>\n");
            feature = row->feature;
            out_format(o, "<feature name=\"%s\">\n", features[feature].name);
            out_str(o, features[feature].types);
            out_str(o, "\n");
        }
        name_of(row, d->regs[n].index, name);
        out_format(o, "<reg name=\"%s\" bitsize=\"%u\" type=\"%s\" regnum=\"%u\"", name, row->bits, row->type, n);
        if (row->group) out_format(o, " group=\"%s\"", row->group);
        out_str(o, "/>\n");
    }
    out_str(o, "</feature>\n</target>\n");
}

/* ---- the XSAVE area ---- */

/* Where part `p` is; NULL: these registers do not have it. */
static const uint8_t *part_of(const struct description *d, const struct registers *r, unsigned p) {
    size_t size = r->xsave_size < sizeof r->xsave ? r->xsave_size : sizeof r->xsave;
    size_t from = p < AVX_PART ? 0 : d->parts[p].offset;
    size_t need = p < AVX_PART ? EXTENDED : d->parts[p].size;
    if (from > size || size - from < need || (p >= AVX_PART && !(r->xcr0 >> p & 1))) return NULL;
    return r->xsave + from;
}

static uint64_t states(const struct registers *r) {
    uint64_t bits;
    memcpy(&bits, r->xsave + XSTATE_BV, sizeof bits);
    return bits;
}

static bool is_initial(const struct registers *r, unsigned p) { return !(states(r) >> p & 1); }

/* Writes the initial state of a part out, which until now nobody had to read. */
static void make_real(const struct description *d, struct registers *r, unsigned p, uint8_t *part) {
    uint64_t bits = states(r);
    if (bits >> p & 1) return;
    if (p == X87_PART) {
        static const uint16_t control = 0x37f;
        memset(part, 0, 24);
        memset(part + 32, 0, 128);
        memcpy(part, &control, sizeof control);
    } else if (p == SSE_PART) {
        memset(part + 160, 0, 256); /* mxcsr is there in any case */
    } else {
        memset(part, 0, d->parts[p].size);
    }
    bits |= 1ull << p;
    memcpy(r->xsave + XSTATE_BV, &bits, sizeof bits);
}

/* Two bits a register where the area has one: 0 valid, 1 zero, 2 special, 3 empty. */
static unsigned tag_of(const uint8_t st[10]) {
    unsigned exponent = (st[9] & 0x7f) << 8 | st[8];
    uint64_t mantissa;
    memcpy(&mantissa, st, 8);
    if (exponent == 0x7fff) return 2;
    if (exponent == 0) return mantissa ? 2 : 1;
    return mantissa >> 63 ? 0 : 2;
}

static uint32_t tags(const uint8_t *area) {
    unsigned top = area[3] >> 3 & 7;
    uint32_t all = 0;
    for (unsigned i = 0; i < 8; i++) /* i: as the processor counts; the stack begins at top */
        all |= (area[4] >> i & 1 ? tag_of(area + 32 + 16 * ((i + 8 - top) % 8)) : 3u) << 2 * i;
    return all;
}

static void set_tags(uint8_t *area, uint32_t all) {
    area[4] = 0;
    for (unsigned i = 0; i < 8; i++)
        if ((all >> 2 * i & 3) != 3) area[4] |= (uint8_t)(1u << i);
}

/* ---- values ---- */

size_t reg_size(const struct description *d, unsigned n) { return n < d->n ? rows[d->regs[n].home].bits / 8u : 0; }

bool reg_get(const struct description *d, const struct registers *r, unsigned n, uint8_t to[REG_MAX]) {
    memset(to, 0, REG_MAX);
    if (n >= d->n) return false;
    const struct row *row = &rows[d->regs[n].home];
    size_t offset = row->offset + (size_t)row->stride * d->regs[n].index;
    if (row->place == MEMBER) {
        memcpy(to, (const uint8_t *)r + offset, row->width);
        return true;
    }
    const uint8_t *part = part_of(d, r, row->part);
    if (!part) return false;
    if (row->place == FTAG) {
        uint32_t all = is_initial(r, X87_PART) ? 0xffff : tags(part);
        memcpy(to, &all, sizeof all);
    } else if (!is_initial(r, row->part) || strcmp(row->names, "mxcsr") == 0) {
        memcpy(to, part + offset, row->width);
    } else if (row->part == X87_PART && offset == 0) {
        to[0] = 0x7f, to[1] = 0x03; /* fctrl */
    }
    return true;
}

bool reg_set(const struct description *d, struct registers *r, unsigned n, const uint8_t from[REG_MAX]) {
    if (n >= d->n) return false;
    const struct row *row = &rows[d->regs[n].home];
    size_t offset = row->offset + (size_t)row->stride * d->regs[n].index;
    if (row->place == MEMBER) {
        memcpy((uint8_t *)r + offset, from, row->width);
        return true;
    }
    uint8_t *part = (uint8_t *)part_of(d, r, row->part), now[REG_MAX];
    if (!part) return false;
    reg_get(d, r, n, now);
    if (memcmp(now, from, row->bits / 8u) == 0) return true; /* what is initial stays so */
    make_real(d, r, row->part, part);
    if (row->place == FTAG) {
        uint32_t all;
        memcpy(&all, from, sizeof all);
        set_tags(part, all);
    } else {
        memcpy(part + offset, from, row->width);
    }
    return true;
}

void regs_get(const struct description *d, const struct registers *r, struct out *o) {
    for (unsigned n = 0; n < d->n; n++) {
        uint8_t value[REG_MAX];
        size_t size = reg_size(d, n);
        if (reg_get(d, r, n, value))
            out_hex(o, value, size);
        else
            for (size_t i = 0; i < size; i++) out_str(o, "xx");
    }
}

bool regs_set(const struct description *d, struct registers *r, struct in *in) {
    for (unsigned n = 0; n < d->n; n++) {
        size_t size = reg_size(d, n);
        uint8_t value[REG_MAX] = {0};
        if ((size_t)(in->end - in->at) < 2 * size) return in_is_empty(in);
        struct in one = {in->at, in->at + 2 * size};
        in->at = one.end;
        if (*one.at == 'x') continue;
        if (in_bytes(&one, value, sizeof value) < 0) return false;
        reg_set(d, r, n, value);
    }
    return in_is_empty(in);
}

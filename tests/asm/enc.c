#include "enc.h"

#include <string.h>

static const char *const legacy_prefixes[LEGACY_PREFIXES] = {"", "\x66", "\xf2", "\xf3", "\x66\xf2", "\x66\xf3"};

static bool mode_has_sib(uint8_t mode)
{
    switch (mode) {
    case ADDR_BASE_INDEX: case ADDR_BASE_INDEX_D8: case ADDR_BASE_INDEX_D32: case ADDR_INDEX: case ADDR_ABS:
    case ADDR_FS: case ADDR_RSP: case ADDR_RSP_INDEX: case ADDR_A32_INDEX: case ADDR_GS_ABS: case ADDR_A32_ABS:
        return true;
    }
    return false;
}

static bool mode_has_base(uint8_t mode)
{
    return mode != ADDR_RIP && mode != ADDR_EIP && mode != ADDR_INDEX && mode != ADDR_ABS && mode != ADDR_FS &&
           mode != ADDR_GS_ABS && mode != ADDR_A32_ABS;
}

static bool mode_has_index(uint8_t mode)
{
    return mode == ADDR_BASE_INDEX || mode == ADDR_BASE_INDEX_D8 || mode == ADDR_BASE_INDEX_D32 ||
           mode == ADDR_INDEX || mode == ADDR_RSP_INDEX || mode == ADDR_A32_INDEX;
}

static int mode_mod(uint8_t mode)
{
    switch (mode) {
    case ADDR_BASE: case ADDR_BASE_INDEX: case ADDR_GS_BASE:
        return 0;
    case ADDR_BASE_D8: case ADDR_BASE_INDEX_D8: case ADDR_RSP: case ADDR_A32_BASE:
        return 1;
    case ADDR_BASE_D32: case ADDR_BASE_INDEX_D32: case ADDR_FS_BASE: case ADDR_RSP_INDEX: case ADDR_A32_INDEX:
        return 2;
    }
    return 0; /* no base: disp32 */
}

static uint8_t *put_disp(uint8_t *p, int32_t disp, int size)
{
    memcpy(p, &disp, 4);
    return p + size;
}

/* ModRM, SIB and displacement of a memory operand. */
static uint8_t *put_mem(const struct fields *f, uint8_t reg, uint8_t *p)
{
    uint8_t base = f->mode == ADDR_RSP || f->mode == ADDR_RSP_INDEX ? 4 : f->rm;
    bool sib = mode_has_sib(f->mode) || (mode_has_base(f->mode) && (base & 7) == 4);
    int mod = mode_mod(f->mode);

    if (!mode_has_base(f->mode)) {
        *p++ = (reg & 7) << 3 | (sib ? 4 : 5);
        if (sib)
            *p++ = f->scale << 6 | (mode_has_index(f->mode) ? f->index & 7 : 4) << 3 | 5;
        return put_disp(p, f->disp, 4);
    }
    if (mod == 0 && (base & 7) == 5)
        mod = 1; /* rbp and r13 cannot do without a displacement */
    *p++ = mod << 6 | (reg & 7) << 3 | (sib ? 4 : base & 7);
    if (sib)
        *p++ = f->scale << 6 | (mode_has_index(f->mode) ? f->index & 7 : 4) << 3 | (base & 7);
    return put_disp(p, f->disp, mod == 2 ? 4 : mod);
}

int encode(const struct tmpl *t, const struct fields *f, uint8_t *out)
{
    uint8_t *p = out;
    uint8_t reg = t->reg_free ? f->reg : t->reg, rm = t->rm_free || t->mem ? f->rm : t->rm;
    uint8_t x = t->mem && mode_has_index(f->mode) ? f->index >> 3 : 0; /* 0..3: EVEX has a fifth bit */
    uint8_t b = rm >> 3;
    bool a32 = t->a32;

    if (t->mem) {
        if (!mode_has_base(f->mode) || f->mode == ADDR_RSP || f->mode == ADDR_RSP_INDEX)
            b = 0;
        a32 |= f->mode == ADDR_A32_BASE || f->mode == ADDR_A32_INDEX || f->mode == ADDR_EIP || f->mode == ADDR_A32_ABS;
    }
    if (t->op_free)
        b = f->rm >> 3 & 1;

    memcpy(p, f->pad, f->npad), p += f->npad;
    if (t->mem && (f->mode == ADDR_FS || f->mode == ADDR_FS_BASE))
        *p++ = 0x64;
    if (t->gs || (t->mem && (f->mode == ADDR_GS_BASE || f->mode == ADDR_GS_ABS)))
        *p++ = 0x65;
    if (a32)
        *p++ = 0x67;

    uint8_t r = reg >> 3, vvvv = t->vvvv_free ? f->vvvv : 0;
    switch (t->kind) {
    case ENC_LEGACY: {
        if (t->lock)
            *p++ = 0xf0;
        for (const char *s = legacy_prefixes[t->pfx]; *s; s++)
            *p++ = (uint8_t)*s;
        uint8_t rex = t->w << 3 | (r & 1) << 2 | (x & 1) << 1 | (b & 1);
        if (rex || f->force_rex)
            *p++ = 0x40 | rex;
        if (t->map)
            *p++ = 0x0f;
        if (t->map >= 2)
            *p++ = t->map == 2 ? 0x38 : 0x3a;
        break;
    }
    case ENC_VEX:
        if (!f->vex3 && t->map == 1 && !t->w && !(x & 1) && !(b & 1)) {
            *p++ = 0xc5;
            *p++ = (~r & 1) << 7 | (~vvvv & 15) << 3 | t->l << 2 | t->pfx;
            break;
        }
        /* fall through */
    case ENC_XOP:
        *p++ = t->kind == ENC_VEX ? 0xc4 : 0x8f;
        *p++ = (~r & 1) << 7 | (~x & 1) << 6 | (~b & 1) << 5 | t->map;
        *p++ = t->w << 7 | (~vvvv & 15) << 3 | t->l << 2 | t->pfx;
        break;
    case ENC_EVEX: {
        /* A register in rm has its fifth bit in X, a vector index in V'. */
        uint8_t fifth = t->vvvv_free ? vvvv >> 4 : x >> 1;
        uint8_t ex = t->mem ? x & 1 : b >> 1 & 1;
        *p++ = 0x62;
        *p++ = (~r & 1) << 7 | (~ex & 1) << 6 | (~b & 1) << 5 | (~(r >> 1) & 1) << 4 | t->map;
        *p++ = t->w << 7 | (~vvvv & 15) << 3 | 4 | t->pfx;
        *p++ = t->zeroing << 7 | t->l << 5 | t->evex_b << 4 | (~fifth & 1) << 3 | (t->masked ? f->mask : 0);
        break;
    }
    }
    *p++ = t->op_free ? (t->op & ~7) | (f->rm & 7) : t->op;
    if (t->modrm) {
        if (t->mem)
            p = put_mem(f, reg, p);
        else
            *p++ = 0xc0 | (reg & 7) << 3 | (rm & 7);
    }
    memcpy(p, f->tail, sizeof f->tail);
    return (int)(p - out) + (int)sizeof f->tail;
}

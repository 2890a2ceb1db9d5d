#include "sphere/operand.h"

#include <asm/prctl.h>

#include "inproc/str.h"
#include "inproc/sys.h"

#define REX_B 1
#define REX_X 2
#define REX_R 4
#define REX_W 8

/* VEX and EVEX have the same bits, inverted but for W. */
static uint8_t rex_of(const struct insn *in, const uint8_t *bytes) {
    const uint8_t *vex = bytes + in->prefix_len;
    if (in->encoding == ENC_VEX2) return vex[1] & 0x80 ? 0 : REX_R;
    if (in->encoding == ENC_VEX3 || in->encoding == ENC_EVEX) return (uint8_t)((~vex[1] >> 5 & 7) | (vex[2] >> 7 << 3));
    return in->has_rex ? bytes[in->rex_off] : 0;
}

static bool has_prefix(const struct insn *in, const uint8_t *bytes, uint8_t prefix) {
    for (int i = 0; i < in->prefix_len; i++)
        if (bytes[i] == prefix) return true;
    return false;
}

int operand_rm(const struct insn *in, const uint8_t *bytes) {
    return (in->modrm & 7) | (rex_of(in, bytes) & REX_B ? 8 : 0);
}

int operand_reg(const struct insn *in, const uint8_t *bytes) {
    return (in->modrm >> 3 & 7) | (rex_of(in, bytes) & REX_R ? 8 : 0);
}

unsigned operand_size(const struct insn *in, const uint8_t *bytes) {
    if (rex_of(in, bytes) & REX_W) return 8;
    return has_prefix(in, bytes, 0x66) ? 2 : 4;
}

static uint64_t segment_base(const struct tblock *t, const struct insn *in) {
    uint64_t base = 0;
    if (in->seg == 0x64) SYS(arch_prctl, ARCH_GET_FS, &base);
    return in->seg == 0x65 ? t->guest_gs : base;
}

static uint64_t displacement(const struct insn *in, const uint8_t *bytes) {
    int32_t d = 0;
    if (in->disp_size == 1) d = (int8_t)bytes[in->disp_off] * (1 << in->disp_shift);
    if (in->disp_size == 4) memcpy(&d, bytes + in->disp_off, 4);
    return (uint64_t)(int64_t)d;
}

/* Base and index. */
static uint64_t registers_of(const struct tblock *t, const struct insn *in, const uint8_t *bytes) {
    uint8_t rex = rex_of(in, bytes);
    if (!in->sib_off) return t->gpr[operand_rm(in, bytes)];
    uint8_t sib = bytes[in->sib_off];
    int index = (sib >> 3 & 7) | (rex & REX_X ? 8 : 0), base = (sib & 7) | (rex & REX_B ? 8 : 0);
    bool no_base = (sib & 7) == 5 && in->modrm >> 6 == 0;
    return (no_base ? 0 : t->gpr[base]) + (index == RSP ? 0 : t->gpr[index] << (sib >> 6));
}

gaddr operand_address(const struct tblock *t, const struct insn *in, const uint8_t *bytes) {
    uint64_t at = in->rip_rel || in->eip_rel ? in->target : registers_of(t, in, bytes) + displacement(in, bytes);
    if (has_prefix(in, bytes, 0x67)) at = (uint32_t)at;
    return segment_base(t, in) + at;
}

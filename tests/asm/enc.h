/* Encoding by hand: an opcode template plus operand fields gives instruction bytes.
 * Not every combination is an instruction; the caller asks Zydis what came out. */
#ifndef REPRISE_ASM_ENC_H
#define REPRISE_ASM_ENC_H

#include <stdbool.h>
#include <stdint.h>

enum enc_kind { ENC_LEGACY, ENC_VEX, ENC_XOP, ENC_EVEX };

/* What names the instruction. */
struct tmpl {
    uint8_t kind;    /* enum enc_kind */
    uint8_t pfx;     /* legacy: index into legacy_prefixes; others: pp */
    uint8_t map, op; /* legacy map 0..3: none, 0F, 0F38, 0F3A */
    uint8_t w, l;
    uint8_t evex_b, masked, zeroing;
    uint8_t reg, rm; /* for opcodes that these extend, and as a first try */
    bool mem, lock, a32, gs;
    bool modrm;                                  /* has one: learned from the decoder */
    bool reg_free, rm_free, op_free, vvvv_free;  /* an operand lives there */
};

enum addr_mode {
    ADDR_RIP, ADDR_BASE, ADDR_BASE_D8, ADDR_BASE_D32, ADDR_BASE_INDEX, ADDR_BASE_INDEX_D8, ADDR_BASE_INDEX_D32,
    ADDR_INDEX, ADDR_ABS, ADDR_FS, ADDR_FS_BASE, ADDR_RSP, ADDR_RSP_INDEX, ADDR_A32_BASE, ADDR_A32_INDEX, ADDR_EIP,
    ADDR_GS_BASE, ADDR_GS_ABS, ADDR_A32_ABS, ADDR_MODES
};

/* What varies from case to case. */
struct fields {
    uint8_t reg, rm, vvvv; /* 0..31; rm is also the memory base */
    uint8_t index, scale;  /* scale: 0..3 */
    uint8_t mode;          /* enum addr_mode */
    uint8_t mask;          /* EVEX aaa */
    bool force_rex, vex3;
    uint8_t npad, pad[10]; /* redundant prefixes in front */
    int32_t disp;
    uint8_t tail[12]; /* immediates come from here */
};

#define LEGACY_PREFIXES 6

/* Writes at least one instruction's worth of bytes; returns how many, immediates included generously. */
int encode(const struct tmpl *t, const struct fields *f, uint8_t *out);

#endif

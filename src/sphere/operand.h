/* Where the memory operand of an instruction is. */
#ifndef REPRISE_OPERAND_H
#define REPRISE_OPERAND_H

#include "engine/decode.h"
#include "engine/tblock.h"

/* The address of the modrm operand of an instruction, legacy or VEX, from the registers in the thread block; `bytes` are the
 * instruction's own. */
gaddr operand_address(const struct tblock *t, const struct insn *in, const uint8_t *bytes);
/* A general register that modrm.rm or modrm.reg names. */
int operand_rm(const struct insn *in, const uint8_t *bytes);
int operand_reg(const struct insn *in, const uint8_t *bytes);
/* 2, 4 or 8 by prefixes, for instructions whose operands have 32 bits unless told otherwise. */
unsigned operand_size(const struct insn *in, const uint8_t *bytes);

#endif

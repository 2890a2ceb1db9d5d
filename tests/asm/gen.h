/* Shared by the parts of the generator. */
#ifndef REPRISE_ASM_GEN_H
#define REPRISE_ASM_GEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <Zydis/Zydis.h>

#include "case.h"

struct decoded {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

struct outputs {
    FILE *bin, *code, *txt;
    int ncases;
};
extern struct outputs out;

uint32_t rnd(void);
bool decode(const uint8_t *bytes, int len, struct decoded *d);
void format(const uint8_t *bytes, int len, char *text, size_t size);
void put_code(FILE *s, const struct asm_case *c);
void put_case(const struct asm_case *c, const char *form, const char *text);

#endif

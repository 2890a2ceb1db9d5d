/* Shared by the parts of the generator. */
#ifndef REPRISE_ASM_GEN_H
#define REPRISE_ASM_GEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <Zydis/Zydis.h>

#include "case.h"
#include "enc.h"

struct decoded {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

struct form {
    struct tmpl t;
    char *name;
    uint16_t isa_ext, category; /* Zydis' */
    bool privileged;
};
extern struct form forms[];
extern int nforms;

struct outputs {
    FILE *bin, *code, *txt;
    int ncases;
    uint32_t code_size;
};
extern struct outputs out;

uint32_t rnd(void);
bool decode(const uint8_t *bytes, int len, struct decoded *d);
struct fields random_fields(const struct tmpl *t, int mode);
/* Makes a case of this form; false: the fields do not fit it. */
bool make_case(const struct form *form, const struct fields *f, struct asm_case *c);
void format(const uint8_t *bytes, int len, char *text, size_t size);
void put_code(FILE *s, const struct asm_case *c);
void put_case(const struct asm_case *c, const char *form, const char *text);

/* gen_seq.c */
void emit_sequences(int n);

#endif

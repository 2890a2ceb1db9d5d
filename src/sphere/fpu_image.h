/* The x87 instruction pointer: the processor notes addresses of the code cache, the program must see its own. */
#ifndef REPRISE_FPU_IMAGE_H
#define REPRISE_FPU_IMAGE_H

#include "engine/decode.h"

/* To be called before the program runs. */
void fpu_image_start(void);

struct fpu_field { /* where an instruction that stores x87 state has put the pointer */
    gaddr at;
    unsigned size; /* 2: only its low half is there, and so on */
};

/* False: it stored none. `at` is the instruction's memory operand, already written. */
bool fpu_image_field(struct fpu_field *f, const struct insn *in, const uint8_t *bytes, gaddr at);
/* Replaces an address of the cache, of which the low `size` bytes are known; false: it is none. */
bool fpu_image_to_guest(uint64_t *ip, unsigned size);

#endif

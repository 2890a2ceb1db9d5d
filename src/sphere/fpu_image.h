/* The x87 instruction pointer: the processor notes addresses of the code cache, the program must see its own. */
#ifndef REPRISE_FPU_IMAGE_H
#define REPRISE_FPU_IMAGE_H

#include "engine/decode.h"
#include "engine/tblock.h"

/* To be called before the program runs. */
void fpu_image_start(void);

struct fpu_field { /* where an instruction that stores x87 state has put the pointer */
    gaddr at;
    unsigned size; /* 2: only its low half is there, and so on */
};

/* False: it stored none, or that is mended already. `at` is the instruction's memory operand, already written. */
bool fpu_image_field(struct tblock *t, struct fpu_field *f, const struct insn *in, const uint8_t *bytes, gaddr at);
/* Recording and replay: xsave, xsavec or xsaveopt to `at`, for the processor that the program is shown. The real one may leave out components
 * that are in their initial state, and says which it counts as such; that depends on when threads were switched, and by whom. So nothing is left
 * out here. False: there is no such memory (thread.copy_fault). */
bool fpu_image_xsave(const struct tblock *t, const struct insn *in, const uint8_t *bytes, gaddr at);
/* Components whose presence is the program's business alone; those of AMX need permission to be loaded. */
#define FPU_IMAGE_ALWAYS 0x2e7ull
/* Replaces an address of the cache, of which the low `size` bytes are known; false: it is none. */
bool fpu_image_to_guest(uint64_t *ip, unsigned size);

#endif

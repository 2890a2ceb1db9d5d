/* The machine state an instruction starts from and leaves behind. state.S knows these offsets. */
#ifndef REPRISE_ASM_STATE_H
#define REPRISE_ASM_STATE_H

#define STATE_GPR 0
#define STATE_RFLAGS 128
#define STATE_FX 192
#define STATE_VEC 704
#define STATE_K 2752
#define STATE_SIZE 2816

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct state {
    uint64_t gpr[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8..r15: the hardware's order */
    uint64_t rflags;
    uint64_t unused[7];
    uint8_t fx[512];     /* FXSAVE64: x87, MMX, MXCSR */
    uint8_t vec[32][64]; /* as wide as the CPU has them, the rest 0 */
    uint64_t k[8];
};
_Static_assert(offsetof(struct state, rflags) == STATE_RFLAGS && offsetof(struct state, fx) == STATE_FX &&
                   offsetof(struct state, vec) == STATE_VEC && offsetof(struct state, k) == STATE_K &&
                   sizeof(struct state) == STATE_SIZE, "state.S");

extern struct state in_state, out_state;
extern void *form_target;
extern uint32_t have_avx, have_avx512;
extern const char form_done[];

/* Loads in_state, jumps to form_target; whoever jumps to form_done comes back here with out_state filled. */
void run_form(void);
#endif
#endif

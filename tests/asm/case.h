/* One test case: an instruction and what its registers must hold so that its memory operands hit mapped memory.
 * gen.c writes an array of these to cases.bin; forms.c has it built in. Both run on the same machine. */
#ifndef REPRISE_ASM_CASE_H
#define REPRISE_ASM_CASE_H

#include <stdint.h>

#define CASE_SLOT 32 /* bytes of code per case in cases.S: the instruction, then a jump to form_done */

/* Fixed places: below 2 GB so that absolute, 32-bit and sign-extended addresses reach them, and above where the kernel
 * may put the heap of a program loaded at 4 MB. */
#define ARENA 0x60000000u
#define ARENA_SIZE 0x2000u
#define STACK 0x61000000u
#define STACK_SIZE 0x2000u
#define JIT 0x70000000u
#define JIT_SIZE 0x1000u
#define LOCAL_SIZE 0x1000u /* rip_area and tls_area */

/* Where a displacement that names an address on its own points; the builder fills it in. */
enum case_area { AREA_NONE, AREA_RIP, AREA_EIP, AREA_ABS, AREA_FS };

enum case_flag {
    CASE_NOPIE = 1,       /* the result depends on the low half of a code address */
    CASE_STRING = 2,      /* string operation */
    CASE_REP = 4,         /* ... with a count in rcx */
    CASE_DIV = 8,         /* wants a dividend that does not overflow in one state */
    CASE_CMPXCHG = 16,    /* wants a comparison that succeeds in one state */
    CASE_BITOFF = 32,     /* bitreg addresses memory: must be small */
    CASE_ENV32 = 64,      /* stores the x87 environment: instruction and data pointers are not compared */
    CASE_ENV16 = 128,
    CASE_ENVFX = 256,
    CASE_SEQUENCE = 512,  /* several instructions; bytes[] is unused */
    CASE_ADDRESS = 1024,  /* leaves a code or data address of the program in a register */
};

enum { MEM_A32 = 1, MEM_FIXED = 2 /* area: the address is in the displacement, base and index stay small */ };

#define NO_REG 0xff

struct case_mem {
    uint8_t base, index; /* 0..15, NO_REG */
    uint8_t scale;       /* 0: no index */
    uint8_t flags;
    int32_t disp;
};

struct asm_case {
    uint8_t len, bytes[15];
    uint8_t disp_off, disp_size; /* of the displacement that names area + area_off */
    uint8_t area;
    uint8_t nmem;
    uint16_t flags;
    uint8_t bitreg;
    uint8_t vsib_reg, vsib_bits; /* vector of indices and the width of one; vsib_bits 0: none */
    uint8_t seq_insns;           /* CASE_SEQUENCE: how many */
    uint16_t area_off;
    uint32_t code_off; /* of the case within its code section */
    struct case_mem mem[2];
};
_Static_assert(sizeof(struct asm_case) == 48, "cases.bin layout");

#endif

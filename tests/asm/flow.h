/* Hand-written tests: FLOW name ... END. A test starts with every register set to a known pattern, rsp at the top of a
 * stack of its own, and ends by jumping to flow_save, which notes all registers and flags; OUT(n) are further results.
 * Natively and translated, all of it must be the same. See flow.c for what is printed. */
#ifndef REPRISE_ASM_FLOW_H
#define REPRISE_ASM_FLOW_H

#define FLOW_OUTS 64
#define FLOW_RFLAGS 128 /* offset in struct flow_regs */

/* PLACE(name, address), so that C gets constants and the assembler symbols, which work inside of quoted macro arguments */
#define FLOW_PLACES(PLACE) \
    PLACE(FSTACK, 0x62000000)      /* the tests' stack */ \
    PLACE(FSTACK_SIZE, 0x1000000) \
    PLACE(FSTACK_TOP, 0x62ff8000)  /* rsp at the start; memory around it is compared */ \
    PLACE(FDATA, 0x63000000)       /* memory at a known address: read, write and execute; compared */ \
    PLACE(FDATA_SIZE, 0x10000) \
    PLACE(FGUARD, 0x64001000)      /* a page the fault tests protect; readable and writable pages around it */

#ifdef __ASSEMBLER__
#define PLACE_SYMBOL(name, address) .set name, address;
FLOW_PLACES(PLACE_SYMBOL)
#define OUT(n) flow_out+8*(n)(%rip)

.macro FLOW name
	.section .rodata
.Lname_\name: .asciz "\name"
	.section flow_tests,"aw"
	.quad	.Lname_\name, t_\name
	.text
	.p2align 4
t_\name:
.endm
#define END jmp flow_save
/* After a fault, go on at the label. Clobbers r11. */
#define RESUME_AT(label) lea label(%rip), %r11; mov %r11, flow_resume(%rip)
#else
#include <stdint.h>
#define PLACE_ENUM(name, address) name = address,
enum { FLOW_PLACES(PLACE_ENUM) };

struct flow_regs {
    uint64_t gpr[16], rflags;
};
#endif
#endif

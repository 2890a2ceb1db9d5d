/* void insn_run(struct tblock *tb, const void *code): runs one instruction of the program, with its registers and arithmetic flags;
 * `code` ends with a return and does not know rsp. Vector state is in the registers all the time. */
#include "engine/tblock.h"

#define ARITHMETIC 0x8d5

    .text
    .globl insn_run
    .hidden insn_run
    .type insn_run, @function
insn_run:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    push %rsi
    mov %gs:TB_RFLAGS, %rax
    and $ARITHMETIC, %eax
    or $0x202, %eax
    push %rax
    popfq
    mov %gs:TB_GPR+0, %rax
    mov %gs:TB_GPR+8, %rcx
    mov %gs:TB_GPR+16, %rdx
    mov %gs:TB_GPR+24, %rbx
    mov %gs:TB_GPR+40, %rbp
    mov %gs:TB_GPR+48, %rsi
    mov %gs:TB_GPR+56, %rdi
    mov %gs:TB_GPR+64, %r8
    mov %gs:TB_GPR+72, %r9
    mov %gs:TB_GPR+80, %r10
    mov %gs:TB_GPR+88, %r11
    mov %gs:TB_GPR+96, %r12
    mov %gs:TB_GPR+104, %r13
    mov %gs:TB_GPR+112, %r14
    mov %gs:TB_GPR+120, %r15
    call *(%rsp)
    mov %rax, %gs:TB_GPR+0
    mov %rcx, %gs:TB_GPR+8
    mov %rdx, %gs:TB_GPR+16
    mov %rbx, %gs:TB_GPR+24
    mov %rbp, %gs:TB_GPR+40
    mov %rsi, %gs:TB_GPR+48
    mov %rdi, %gs:TB_GPR+56
    mov %r8, %gs:TB_GPR+64
    mov %r9, %gs:TB_GPR+72
    mov %r10, %gs:TB_GPR+80
    mov %r11, %gs:TB_GPR+88
    mov %r12, %gs:TB_GPR+96
    mov %r13, %gs:TB_GPR+104
    mov %r14, %gs:TB_GPR+112
    mov %r15, %gs:TB_GPR+120
    pushfq
    pop %rax
    and $ARITHMETIC, %eax
    andq $~ARITHMETIC, %gs:TB_RFLAGS
    or %rax, %gs:TB_RFLAGS
    pop %rsi
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size insn_run, . - insn_run
    .section .note.GNU-stack,"",@progbits

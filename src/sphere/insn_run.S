/* void insn_run(struct tblock *tb, const void *code): runs one instruction of the program, with its registers and arithmetic flags;
 * `code` ends with a return and does not know rsp. Vector state is in the registers all the time. */
#include "engine/gprs.inc"

#define ARITHMETIC 0x8d5

    .text
    .globl insn_run
    .hidden insn_run
    .type insn_run, @function
insn_run:
    push_preserved
    push %rsi
    mov %gs:TB_RFLAGS, %rax
    and $ARITHMETIC, %eax
    or $0x202, %eax
    push %rax
    popfq
    load_gprs
    call *(%rsp)
    save_gprs
    pushfq
    pop %rax
    and $ARITHMETIC, %eax
    andq $~ARITHMETIC, %gs:TB_RFLAGS
    or %rax, %gs:TB_RFLAGS
    pop %rsi
    pop_preserved
    ret
    .size insn_run, . - insn_run
    .section .note.GNU-stack,"",@progbits

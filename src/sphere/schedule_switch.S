/* void schedule_swap(uint64_t *save_sp, uint64_t load_sp): what a called function must preserve goes to the stack. */
#include "engine/gprs.inc"

    .text
    .globl schedule_swap
    .hidden schedule_swap
schedule_swap:
    push_preserved
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop_preserved
    ret

    .section .note.GNU-stack, "", @progbits

/* void schedule_swap(uint64_t *save_sp, uint64_t load_sp): what a called function must preserve goes to the stack. */
    .text
    .globl schedule_swap
    .hidden schedule_swap
schedule_swap:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret

    .section .note.GNU-stack, "", @progbits

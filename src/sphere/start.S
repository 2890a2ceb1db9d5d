/* Entry of the runtime: the kernel's initial stack is at rsp. */
    .text
    .globl _start
    .hidden _start
_start:
    mov %rsp, %rdi
    xor %ebp, %ebp
    and $-16, %rsp
    call start_here
    ud2

    .section .note.GNU-stack, "", @progbits

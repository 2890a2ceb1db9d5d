/* Entry of the runtime: the kernel's initial stack is at rsp. */
    .text
    .globl _start
    .hidden _start
_start:
    mov %rsp, %rdi
    xor %ebp, %ebp
    and $-16, %rsp
    call start_move
    ud2

/* void start_mover(const struct move *moves, long n, void (*go)(void *), void *arg): moves mappings with mremap, then jumps
 * to its caller's new place. Runs from a copy of itself, because its own text is among what moves. Registers only. */
    .globl start_mover, start_mover_end
    .hidden start_mover, start_mover_end
start_mover:
    mov %rdi, %r12
    mov %rsi, %r13
    mov %rdx, %r14
    mov %rcx, %r15
1:
    test %r13, %r13
    jz 2f
    mov (%r12), %rdi
    mov 8(%r12), %rsi
    mov %rsi, %rdx
    mov $3, %r10d /* MREMAP_MAYMOVE | MREMAP_FIXED */
    mov 16(%r12), %r8
    mov $25, %eax /* mremap */
    syscall
    cmp $-4096, %rax
    ja 3f
    add $24, %r12
    dec %r13
    jmp 1b
2:
    mov %r15, %rdi
    call *%r14
3:
    mov $125, %edi
    mov $231, %eax
    syscall
start_mover_end:

    .section .note.GNU-stack, "", @progbits

// cflags: -nostdlib -static
/* No libc at all: the state at the first instruction, a few system calls, exit 7. Checks argc, flags, alignment, rdx. */
    .globl _start
    .text
_start:
    mov %rsp, %rbx
    test $15, %bl              /* the stack is 16-byte aligned */
    jnz bad
    cmpq $1, (%rbx)            /* argc */
    jne bad
    mov 8(%rbx), %rsi          /* argv[0] is a string */
    cmpb $0, (%rsi)
    je bad
    cmpq $0, 16(%rbx)          /* argv ends */
    jne bad
    or %rax, %rbp
    or %rcx, %rbp
    or %rdx, %rbp
    or %rsi, %rdi
    or %r8, %rbp
    or %r15, %rbp
    test %rbp, %rbp            /* registers start as zero */
    jnz bad
    lea 24(%rbx), %rdi
1:  mov (%rdi), %rax           /* skip the environment */
    add $8, %rdi
    test %rax, %rax
    jnz 1b
2:  mov (%rdi), %rax           /* auxv: look for AT_ENTRY = 9 */
    cmp $9, %rax
    je 3f
    add $16, %rdi
    test %rax, %rax
    jnz 2b
    jmp bad
3:  lea _start(%rip), %rax
    cmp %rax, 8(%rdi)
    jne bad
    mov $1, %eax
    mov $1, %edi
    lea good_text(%rip), %rsi
    mov $good_len, %edx
    syscall
    mov $231, %eax
    mov $7, %edi
    syscall
bad:
    mov $1, %eax
    mov $1, %edi
    lea bad_text(%rip), %rsi
    mov $bad_len, %edx
    syscall
    mov $60, %eax
    mov $1, %edi
    syscall
    .section .rodata
good_text: .ascii "started as the kernel does\n"
    .set good_len, . - good_text
bad_text: .ascii "FAIL: wrong state at the entry point\n"
    .set bad_len, . - bad_text
    .section .note.GNU-stack,"",@progbits

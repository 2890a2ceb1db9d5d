// cflags: -nostdlib -static -no-pie
/* A program whose every instruction, load, store and tick can be counted: no libc, no kernel business until the end.
 * Recursion, forward calls of one function in a row, jump tables, loops, read-modify-write, string instructions. */
    .text
    .globl _start
_start:
    mov $9, %edi
    call fib
    mov %rax, total(%rip)

    mov $300, %ecx          /* a loop with memory operands */
1:  add %rcx, total(%rip)
    mov total(%rip), %rdx
    lea 8(%rdx), %rsi
    push %rsi
    pop %rbx
    xchg %rbx, spare(%rip)
    cmovne spare(%rip), %rax
    dec %ecx
    jnz 1b

    call leaf               /* the same function twice in a row: a pc comes back without a backward branch */
    call leaf
    mov $leaf, %eax
    call *%rax
    mov $40, %r12d          /* a jump table */
2:  mov %r12d, %eax
    and $3, %eax
    jmp *table(,%rax,8)
case0: inc %r13
    jmp 3f
case1: add %r13, spare(%rip)
case2: sub $1, %r13
    jmp 3f
case3: push %r13
    call leaf
    pop %r13
3:  dec %r12d
    jns 2b

    lea buffer(%rip), %rdi  /* rep counts as one instruction here */
    mov $64, %ecx
    mov $7, %eax
    rep stosb
    mov $5, %ecx
4:  loop 4b
    jrcxz 5f
    ud2
5:  push $6f                /* return as jump */
    ret
    ud2
6:  mov $231, %eax
    xor %edi, %edi
    syscall
    ud2

leaf:
    addq $3, spare(%rip)
    ret

fib:
    cmp $2, %edi
    jae 1f
    mov %edi, %eax
    ret
1:  push %rdi
    dec %edi
    call fib
    pop %rdi
    push %rax
    sub $2, %edi
    call fib
    pop %rdx
    add %rdx, %rax
    ret

    .section .rodata
    .balign 8
table: .quad case0, case1, case2, case3
    .data
total: .quad 0
spare: .quad 1
buffer: .skip 64
    .section .note.GNU-stack, "", @progbits

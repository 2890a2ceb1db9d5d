// cflags: -nostdlib -static -no-pie
/* Every kind of tick point, with flags that are read behind it and flags that are not. r15 gathers what is read; the exit
 * status is a digest of it. */
    .macro gather           /* arithmetic flags and rcx into r15 */
    pushf
    pop %r14
    and $0x8d5, %r14d
    rol $7, %r15
    xor %r14, %r15
    add %rcx, %r15
    .endm

    .text
    .globl _start
_start:
    xor %r15d, %r15d
    mov $0x1234, %ecx

    /* conditional branches backward, each condition, flags read at the target */
    .irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
    mov $3, %ebx
    jmp 2f
1:  gather
    sub $1, %ebx
    jz 4f
2:  cmp $0x7fffffff, %r15d
    j\cc 1b
    cmp %r15d, %ebx
    j\cc 1b
    test %ebx, %ebx
    j\cc 1b
    test %r15b, %r15b
    j\cc 1b
4:
    .endr

    /* the same, flags dead at the target */
    .irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
    mov $3, %ebx
    jmp 2f
1:  add $3, %r15
    sub $1, %ebx
    jz 4f
2:  cmp $0x7fffffff, %r15d
    j\cc 1b
    cmp %r15d, %ebx
    j\cc 1b
    test %ebx, %ebx
    j\cc 1b
4:
    .endr

    /* jumps backward */
    mov $4, %ebx
    jmp 2f
1:  gather
    sub $1, %ebx
    jz 3f
2:  cmp $2, %ebx
    jmp 1b
3:  mov $4, %ebx
    jmp 2f
1:  sub $1, %ebx
    jz 3f
2:  cmp $2, %ebx
    jmp 1b
3:
    /* small loops, whose translations hold several rounds: flags read at the top, flags dead, left in the middle, backward, too */
    mov $11, %ebx
    cmp $99, %ebx
1:  adc %rbx, %r15
    dec %ebx
    jnz 1b
    mov $13, %ebx
1:  add %rbx, %r15
    sub $1, %ebx
    jnz 1b
    mov $10, %ebx
1:  sub $1, %ebx
    jz 3f
    add %rbx, %r15
    jmp 1b
3:  jmp 2f
1:  gather
    jmp 4f
2:  mov $9, %ebx
    jmp 3f
2:  sub $1, %ebx
    jz 1b
3:  test %ebx, %ebx
    jnz 2b
4:
    mov $7, %ebx            /* one in another */
1:  mov $5, %edx
2:  sub $1, %edx
    jnz 2b
    add %rbx, %r15
    sub $1, %ebx
    jnz 1b
    /* loops */
    mov $5, %ecx
1:  gather
    loop 1b
    mov $5, %ecx
1:  cmp $2, %ecx
    gather
    loopne 1b
    mov $5, %ecx
1:  cmp %ecx, %ecx
    gather
    loope 1b
    mov $0xffffffff00000003, %rcx
1:  gather
    loopl 1b
    xor %ecx, %ecx
    mov $3, %ebx
    jmp 2f
1:  gather
    dec %ebx
    jz 3f
2:  cmp $9, %ebx
    jrcxz 1b
3:
    /* calls: flags read in the callee, or behind a leaf, or dead */
    mov $0x77, %ecx
    cmp $0x99, %ecx
    call reads
    cmp $0x55, %ecx
    call passes
    gather
    call kills
    call kills
    cmp $0x99, %ecx
    call 1f                 /* to the next instruction */
1:  pop %rax
    gather
    call 1f
1:  pop %rax
    add $1, %r15

    /* through registers and memory, rcx among them */
    mov $reads, %eax
    cmp $0x11, %r15d
    call *%rax
    mov $reads, %ecx
    cmp $0x11, %r15d
    call *%rcx
    mov $1, %ecx
    cmp $0x11, %r15d
    call *functions(,%rcx,8)
    gather
    cmp $0x12, %r15d
    call *functions(%rip)
    gather
    mov $1f, %ecx
    cmp $0x13, %r15d
    jmp *%rcx
    ud2
1:  gather
    mov $1f, %eax
    cmp $0x14, %r15d
    jmp *%rax
    ud2
1:  gather
    mov $2, %ecx
    cmp $0x15, %r15d
    jmp *functions(,%rcx,8)
    ud2
lands:
    gather
    cmp $0x16, %r15d
    jmp *functions+24(%rip)
    ud2
lands_again:
    gather

    /* returns that drop arguments, returns that are jumps */
    push $1
    push $2
    cmp $0x17, %r15d
    call drops
    gather
    push $1f
    cmp $0x18, %r15d
    ret
    ud2
1:  gather
    /* loops that only such returns close */
    mov $5, %ebx
    jmp 2f
1:  gather
    sub $1, %ebx
    jz 3f
2:  cmp $0x19, %r15d
    push $1b
    ret
    ud2
3:  mov $1f, %eax
    mov $5, %ebx
1:  gather
    sub $1, %ebx
    jz 3f
    cmp $0x1a, %r15d
    push %rax
    ret
3:  mov $5, %ebx
    movq $1f, pushed(%rip)
1:  add %rbx, %r15
    sub $1, %ebx
    jz 3f
    push pushed(%rip)
    ret
3:
    mov %r15, %rax          /* fold 64 bits into 8 */
    shr $32, %rax
    xor %r15, %rax
    mov %rax, %rdi
    shr $16, %rdi
    xor %rax, %rdi
    mov %rdi, %rax
    shr $8, %rax
    xor %rax, %rdi
    movzbl %dil, %edi
    mov $231, %eax
    syscall
    ud2

reads:
    gather
    ret
passes:
    mov $3, %eax
    ret
kills:
    push %rbx
    mov %rcx, %rbx
    xor %eax, %eax
    pop %rbx
    ret
drops:
    gather
    ret $16

    .data
pushed:    .quad 0
functions: .quad reads, passes, lands, lands_again
    .section .note.GNU-stack, "", @progbits

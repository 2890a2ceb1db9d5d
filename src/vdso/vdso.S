/* The vDSO that a recorded program sees: each function is a real system call, which the gate records. The runtime itself asks
 * the kernel's vDSO, so a clock still costs little. There is no getrandom: libc falls back to the call. */
#include <asm/unistd.h>

.macro call name, number
    .globl __vdso_\name
    .type __vdso_\name, @function
    .weak \name
    .type \name, @function
    .balign 16
__vdso_\name:
\name:
    .cfi_startproc
    mov $\number, %eax
    syscall
    ret
    .cfi_endproc
    .size __vdso_\name, . - __vdso_\name
    .size \name, . - \name
.endm

    .text
    call clock_gettime, __NR_clock_gettime
    call gettimeofday, __NR_gettimeofday
    call time, __NR_time
    call getcpu, __NR_getcpu
    call clock_getres, __NR_clock_getres

    .section .note.GNU-stack, "", @progbits

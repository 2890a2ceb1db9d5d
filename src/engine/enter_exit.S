/* Into the cache and out of it.
 *
 * Ways out arrive with guest registers in place, except rcx where a comment says so. They save everything into the thread
 * block, switch to the thread's runtime stack and call one C function; rt_resume then goes back in. The runtime is built
 * without vector instructions, so vector and x87 state stays in the registers all the time. */
#include "engine/gprs.inc"
#include "inproc/layout.h"

    .text

.macro save_all
    save_gprs
    mov %rsp, %gs:TB_GPR+32
    mov %gs:TB_RT_SP, %rsp
    pushfq
    popq %gs:TB_RFLAGS
    cld
    testl $0x244000, %gs:TB_RFLAGS /* AC, ID, NT: rt_resume only sets them, for another thread or after popf they have to be gone */
    jz 77f
    pushq $2
    popfq
77:
    mov %gs:TB_SELF, %rdi
.endm

.macro way_out name, function
    .globl \name
    .hidden \name
\name:
    save_all
    call \function
    jmp rt_resume
.endm

    way_out rt_exit, engine_on_exit
    way_out rt_syscall, engine_on_syscall
    way_out rt_special, engine_on_special
/* From the trap of a tick (fault_is_tick). */
    way_out rt_tick, engine_on_tick_budget
    way_out rt_indirect_tick, engine_on_indirect_tick

/* A return whose table entry was empty or somebody else's: the return address is popped but still below rsp, the slot below
 * it has what the entry was, rcx is in s0. */
    .globl rt_ret_miss
    .hidden rt_ret_miss
rt_ret_miss:
    mov -16(%rsp), %rcx
    mov %rcx, %gs:TB_S1
    movq $0, -16(%rsp)
    mov -8(%rsp), %rcx
    mov %rcx, %gs:TB_PC
    mov %gs:TB_S0, %rcx
    save_all
    call engine_on_ret_miss
    jmp rt_resume

    .globl rt_jmp_miss
    .hidden rt_jmp_miss
rt_jmp_miss:
    mov %gs:TB_S1, %rcx
    mov %rcx, %gs:TB_PC
    mov %gs:TB_S0, %rcx
    save_all
    call engine_on_jmp_miss
    jmp rt_resume

/* As rt_jmp_miss, but the host's return address is on the stack. */
    .globl rt_call_miss
    .hidden rt_call_miss
rt_call_miss:
    lea 8(%rsp), %rsp
    movq $0, -8(%rsp)
    .globl rt_call_fail
    .hidden rt_call_fail
rt_call_fail:
    mov %gs:TB_S1, %rcx
    mov %rcx, %gs:TB_PC
    mov %gs:TB_S0, %rcx
    save_all
    call engine_on_call_miss
    jmp rt_resume

/* Enters the cache at host_pc with the registers of the thread block. Between rt_resume and rt_resume_end nothing is lost by
 * starting over: a signal handler that finds the pc in here sets it back to rt_resume, so that no request is missed. */
    .globl rt_resume
    .hidden rt_resume
rt_resume:
    mov %gs:TB_RT_SP, %rsp
    cmpq $0, %gs:TB_PENDING
    jne 2f
    pushq %gs:TB_RFLAGS
    testl $0xfffff528, (%rsp) /* more than the arithmetic flags, IF and the always-one bit? */
    jnz 3f
    mov (%rsp), %eax
    shr $11, %eax
    and $1, %eax /* OF */
    mov (%rsp), %ah
    add $0x7f, %al
    sahf
1:
    load_gprs
    mov %gs:TB_GPR+32, %rsp
    jmp *%gs:TB_HOST_PC
3:
    popfq
    jmp 1b
    .globl rt_resume_end
    .hidden rt_resume_end
rt_resume_end:
2:
    mov %gs:TB_SELF, %rdi
    call engine_on_safepoint
    jmp rt_resume

/* In the place of the cache when the program has its trap flag set: the handler of this signal goes on in the cache, with the
 * flag set. */
    .globl rt_step
    .hidden rt_step
rt_step:
    ud2

    .globl engine_run
    .hidden engine_run
engine_run:
    mov %gs:TB_RT_SP, %rsp
    mov %gs:TB_SELF, %rdi
    call engine_on_enter
    jmp rt_resume

/* Code that is copied to LAYOUT_STUBS: what empty table entries point to. 64 bytes apart. */
    .globl rt_stubs, rt_stubs_end
    .hidden rt_stubs, rt_stubs_end
    .balign 64
rt_stubs:
    .rept TABLES_RET /* 16 bytes apart */
    pop %rcx
    jmp *%gs:TB_FN_RET_MISS
    .balign 16
    .endr
    .balign 64
    jmp *%gs:TB_FN_JMP_MISS
    .balign 64
    jmp *%gs:TB_FN_CALL_MISS
    .balign 64
rt_stubs_end:

    .section .note.GNU-stack, "", @progbits

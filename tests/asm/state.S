/* run_form: load the whole machine state, jump to the instruction under test, save the whole machine state.
 * Nothing but the instruction under test runs between loading and saving, apart from one jump on either side. */
#include "state.h"

#define IN(off) in_state+(off)(%rip)
#define OUT(off) out_state+(off)(%rip)

	.text
	.globl run_form, form_done
run_form:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, host_rsp(%rip)

	fxrstor64 IN(STATE_FX)
	cmpl	$0, have_avx512(%rip)
	jne	1f
	cmpl	$0, have_avx(%rip)
	je	2f
	.irp	n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	vmovdqu	IN(STATE_VEC+64*\n), %ymm\n
	.endr
	jmp	3f
1:	.irp	n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	vmovdqu64 IN(STATE_VEC+64*\n), %zmm\n
	.endr
	.irp	n,0,1,2,3,4,5,6,7
	kmovq	IN(STATE_K+8*\n), %k\n
	.endr
	jmp	3f
2:	.irp	n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	movdqu	IN(STATE_VEC+64*\n), %xmm\n
	.endr
3:	pushq	IN(STATE_RFLAGS)
	popfq
	mov	IN(0), %rax
	mov	IN(8), %rcx
	mov	IN(16), %rdx
	mov	IN(24), %rbx
	mov	IN(32), %rsp
	mov	IN(40), %rbp
	mov	IN(48), %rsi
	mov	IN(56), %rdi
	.irp	n,8,9,10,11,12,13,14,15
	mov	IN(8*\n), %r\n
	.endr
	jmp	*form_target(%rip)

	.p2align 5
form_done:
	mov	%rax, OUT(0)
	mov	%rcx, OUT(8)
	mov	%rdx, OUT(16)
	mov	%rbx, OUT(24)
	mov	%rsp, OUT(32)
	mov	%rbp, OUT(40)
	mov	%rsi, OUT(48)
	mov	%rdi, OUT(56)
	.irp	n,8,9,10,11,12,13,14,15
	mov	%r\n, OUT(8*\n)
	.endr
	mov	host_rsp(%rip), %rsp
	pushfq
	popq	OUT(STATE_RFLAGS)
	pushq	$0x202
	popfq
	fxsave64 OUT(STATE_FX)
	cmpl	$0, have_avx512(%rip)
	jne	1f
	cmpl	$0, have_avx(%rip)
	je	2f
	.irp	n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	vmovdqu	%ymm\n, OUT(STATE_VEC+64*\n)
	.endr
	vzeroupper
	jmp	3f
1:	.irp	n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	vmovdqu64 %zmm\n, OUT(STATE_VEC+64*\n)
	.endr
	.irp	n,0,1,2,3,4,5,6,7
	kmovq	%k\n, OUT(STATE_K+8*\n)
	.endr
	vzeroupper
	jmp	3f
2:	.irp	n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	movdqu	%xmm\n, OUT(STATE_VEC+64*\n)
	.endr
3:	fninit
	ldmxcsr	default_mxcsr(%rip)
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret

	.section .rodata
default_mxcsr:
	.long	0x1f80

	.bss
	.globl	in_state, out_state, form_target, have_avx, have_avx512, rip_area, rip_area_end
	.balign 4096
rip_area: .skip 4096
	.balign 64
in_state: .skip STATE_SIZE
	.balign 64
out_state: .skip STATE_SIZE
form_target: .skip 8
host_rsp: .skip 8
have_avx: .skip 4
have_avx512: .skip 4

	.section .note.GNU-stack,"",@progbits

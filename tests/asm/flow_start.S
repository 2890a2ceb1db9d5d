/* Entry to and exit from hand-written tests. */
#include "flow.h"
	.text
	.globl	flow_call, flow_save
/* void flow_call(void (*test)(void)) */
flow_call:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, host_rsp(%rip)
	mov	%rdi, flow_target(%rip)
	pushq	$0x202
	popfq
	movabs	$0x0102030405060700, %rax
	movabs	$0x1112131415161701, %rcx
	movabs	$0x2122232425262702, %rdx
	movabs	$0x3132333435363703, %rbx
	mov	$FSTACK_TOP, %rsp
	movabs	$0x5152535455565705, %rbp
	movabs	$0x6162636465666706, %rsi
	movabs	$0x7172737475767707, %rdi
	movabs	$0x8182838485868708, %r8
	movabs	$0x9192939495969709, %r9
	movabs	$0xa1a2a3a4a5a6a70a, %r10
	movabs	$0xb1b2b3b4b5b6b70b, %r11
	movabs	$0xc1c2c3c4c5c6c70c, %r12
	movabs	$0xd1d2d3d4d5d6d70d, %r13
	movabs	$0xe1e2e3e4e5e6e70e, %r14
	movabs	$0xf1f2f3f4f5f6f70f, %r15
	jmp	*flow_target(%rip)

flow_save:
	mov	%rax, flow_regs+0(%rip)
	mov	%rcx, flow_regs+8(%rip)
	mov	%rdx, flow_regs+16(%rip)
	mov	%rbx, flow_regs+24(%rip)
	mov	%rsp, flow_regs+32(%rip)
	mov	%rbp, flow_regs+40(%rip)
	mov	%rsi, flow_regs+48(%rip)
	mov	%rdi, flow_regs+56(%rip)
	.irp	n,8,9,10,11,12,13,14,15
	mov	%r\n, flow_regs+8*\n(%rip)
	.endr
	mov	host_rsp(%rip), %rsp
	pushfq
	popq	flow_regs+FLOW_RFLAGS(%rip)
	pushq	$0x202
	popfq
	fninit
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret

	.bss
	.globl	flow_regs, flow_out, flow_resume
	.balign	64
flow_regs: .skip 136
	.balign	64
flow_out: .skip 8*FLOW_OUTS
host_rsp: .skip 8
flow_target: .skip 8
flow_resume: .skip 8
	.section .note.GNU-stack,"",@progbits

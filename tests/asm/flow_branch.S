/* Direct and indirect transfers: conditions, loops, calls, returns, stack games. */
#include "flow.h"

	.section .rodata
	.balign	8
/* CF PF ZF SF OF in all combinations, on top of the bit that is always 1 and IF */
flag_patterns:
	.irp	of,0,0x800
	.irp	sf,0,0x80
	.irp	zf,0,0x40
	.irp	pf,0,4
	.irp	cf,0,1
	.quad	0x202+\of+\sf+\zf+\pf+\cf
	.endr
	.endr
	.endr
	.endr
	.endr
	.globl	flag_patterns

/* Runs the code between FLAGS_LOOP and FLAGS_NEXT with each pattern in the flags; r8 to r10 and rbx belong to the loop. */
#define FLAGS_LOOP \
	lea flag_patterns(%rip), %r9; xor %ebx, %ebx; xor %r8d, %r8d; \
77:	pushq (%r9,%rbx,8); popfq
#define FLAGS_NEXT \
	inc %ebx; cmp $32, %ebx; jb 77b

/* --- conditions --- */
.macro JCC cc
FLOW j\cc\()_rel8
	FLAGS_LOOP
	j\cc	1f
	jmp	2f
1:	bts	%rbx, %r8
2:	FLAGS_NEXT
	END
FLOW j\cc\()_rel32
	FLAGS_LOOP
	{disp32} j\cc 1f
	jmp	2f
1:	bts	%rbx, %r8
2:	FLAGS_NEXT
	END
FLOW j\cc\()_backward
	jmp	3f
1:	bts	%rbx, %r8
	jmp	2f
3:	FLAGS_LOOP
	j\cc	1b
2:	FLAGS_NEXT
	END
FLOW j\cc\()_hinted
	FLAGS_LOOP
	.byte	0x3e
	j\cc	1f
	.byte	0x2e
	{disp32} j\cc 1f
	jmp	2f
1:	bts	%rbx, %r8
2:	FLAGS_NEXT
	END
.endm
	.irp	cc,o,no,b,ae,e,ne,be,a,s,ns,p,np,l,ge,le,g
	JCC	\cc
	.endr

.macro LOOPS insn, name, count
FLOW \name\()_\count
	mov	$\count, %rcx
	xor	%eax, %eax
1:	inc	%eax
	cmp	$3, %eax
	\insn	1b
	END
.endm
	.irp	count,1,2,5
	LOOPS	loop,loop,\count
	.endr
	.irp	count,1,2,5,0x100000001,0x100000004 /* in 64 bits these two are long loops */
	LOOPS	loope,loope,\count
	LOOPS	loopne,loopne,\count
	LOOPS	"addr32 loop",loop_a32,\count
	LOOPS	"addr32 loope",loope_a32,\count
	LOOPS	"addr32 loopne",loopne_a32,\count
	.endr

FLOW loop_keeps_flags
	mov	$3, %rcx
	stc
	std
1:	loop	1b
	END
.macro JCXZ insn, count
FLOW \insn\()_\count
	movabs	$\count, %rcx
	stc
	mov	$1, %eax
	\insn	1f
	mov	$2, %eax
1:	END
.endm
	.irp	count,0,1,0x100000000,0xffffffffffffffff
	JCXZ	jrcxz,\count
	JCXZ	jecxz,\count
	.endr

/* --- flags and registers live across transfers: nothing but the transfer between popf and pushf --- */
#define NOTE_FLAGS pushfq; pop %r10; rol $5, %r12; xor %r10, %r12
.macro FLAGS_ACROSS name, before, transfer:vararg
FLOW flags_across_\name
	\before
	FLAGS_LOOP
	\transfer
1:	NOTE_FLAGS
	FLAGS_NEXT
	END
.endm
	.globl	just_return
just_return:
	ret
return_16:
	ret	$16
	.data
	.balign	8
to_just_return: .quad just_return
	.text
	FLAGS_ACROSS jmp,nop,jmp 1f
	FLAGS_ACROSS jmp_rel32,nop,{disp32} jmp 1f
	FLAGS_ACROSS call_rel,nop,call just_return
	FLAGS_ACROSS call_reg,"lea just_return(%rip), %rax",call *%rax
	FLAGS_ACROSS call_rcx,"lea just_return(%rip), %rcx",call *%rcx
	FLAGS_ACROSS call_mem,nop,call *to_just_return(%rip)
	FLAGS_ACROSS jmp_reg,"lea 1f(%rip), %r11",jmp *%r11
	FLAGS_ACROSS jmp_rdx,"lea 1f(%rip), %rdx",jmp *%rdx
	FLAGS_ACROSS jmp_red_zone,"lea 1f(%rip), %rax; mov %rax, -64(%rsp)",jmp *-64(%rsp)
	FLAGS_ACROSS push_ret,"lea 1f(%rip), %rax",push %rax; ret
	FLAGS_ACROSS jrcxz,"xor %ecx, %ecx",jrcxz 1f
	FLAGS_ACROSS loop,"mov $1000, %rcx",loop 1f
	FLAGS_ACROSS ret_16,"lea 1f(%rip), %rax",push %rax; push %rax; push %rax; ret $16

FLOW carry_returned
	xor	%ebx, %ebx
	call	1f
	adc	$0x100, %rbx
	clc
	call	2f
	adc	$0x10000, %rbx
	lea	1f(%rip), %rax
	call	*%rax
	rcl	$1, %rbx
	END
1:	stc
	ret
2:	cmc
	clc
	ret

FLOW flags_consumed_at_indirect_target
	mov	$5, %ebx
	lea	1f(%rip), %rdx
2:	cmp	$2, %ebx
	jmp	*%rdx
1:	lea	-1(%rbx), %ebx
	seta	%al
	setb	%cl
	cmovbe	%rsi, %rdi
	ja	2b
	END

FLOW flags_across_dead_code_block
	/* the first block looks as if its flags were dead: both successors overwrite them, but one only after reading CF */
	mov	$7, %eax
1:	sub	$3, %eax
	jz	2f
	jmp	3f
2:	xor	%ecx, %ecx
3:	setc	%bl
	inc	%ecx
	setc	%bh
	jns	4f
	add	%ecx, %ecx
4:	END

FLOW parity_and_adjust
	mov	$0x0f, %eax
	add	$1, %al
	call	just_return
	lahf
	mov	%rax, OUT(0)
	mov	$0x99, %al
	sub	$0x0a, %al
	jmp	1f
1:	lahf
	END

/* --- calls through everything --- */
note_return_address:
	mov	(%rsp), %r12
	mov	%rsp, %r13
	ret
	.globl	note_return_address
FLOW call_rel
	call	note_return_address
1:	END
.macro CALL_REG reg
FLOW call_\reg
	lea	note_return_address(%rip), %\reg
	call	*%\reg
	END
FLOW jmp_\reg
	lea	1f(%rip), %\reg
	jmp	*%\reg
	ud2
1:	END
.endm
	.irp	reg,rax,rcx,rdx,rbx,rbp,rsi,rdi,r8,r9,r10,r11,r12,r13,r14,r15
	CALL_REG \reg
	.endr

/* The pointer is at FDATA+0x100. */
.macro THROUGH_MEM name, setup, operand:vararg
FLOW call_mem_\name
	lea	note_return_address(%rip), %rax
	mov	%rax, FDATA+0x100
	\setup
	call	*\operand
	END
FLOW jmp_mem_\name
	lea	1f(%rip), %rax
	mov	%rax, FDATA+0x100
	\setup
	jmp	*\operand
	ud2
1:	END
FLOW push_pop_mem_\name
	mov	$0x1234567, %eax
	mov	%rax, FDATA+0x100
	\setup
	push	\operand
	pop	%r8
	push	%r9
	pop	\operand
	mov	FDATA+0x100, %r10
	END
.endm
	THROUGH_MEM abs,nop,FDATA+0x100
	THROUGH_MEM rax,"mov $FDATA+0x100, %eax",(%rax)
	THROUGH_MEM rcx_d8,"mov $FDATA+0x110, %ecx",-0x10(%rcx)
	THROUGH_MEM rdx_d32,"mov $FDATA+0x10100, %edx",-0x10000(%rdx)
	THROUGH_MEM r11_rcx,"mov $FDATA, %r11d; mov $0x20, %ecx",(%r11,%rcx,8)
	THROUGH_MEM r13,"mov $FDATA+0x100, %r13d",(%r13)
	THROUGH_MEM r12_r15,"mov $FDATA+0x108, %r12d; mov $-4, %r15",8(%r12,%r15,4)
	THROUGH_MEM index,"mov $FDATA/8, %eax",0x100(,%rax,8)
	THROUGH_MEM a32,"movabs $0xdeadbeef00000000+FDATA, %rcx",0x100(%ecx)
	THROUGH_MEM a32_index,"movabs $0xdeadbeef00000000+FDATA, %rdx; movabs $0xfeed000000000040, %r14",(%edx,%r14d,4)
	THROUGH_MEM rbp,"mov $FDATA+0x80, %ebp",0x80(%rbp)
	THROUGH_MEM rsp,"lea -0x100(%rsp), %rsp; mov FDATA+0x100, %rdx; mov %rdx, (%rsp)",(%rsp)
	THROUGH_MEM rsp_d8,"mov FDATA+0x100, %rdx; mov %rdx, 8(%rsp)",8(%rsp)
	THROUGH_MEM red_zone,"mov FDATA+0x100, %rdx; mov %rdx, -8(%rsp)",-8(%rsp)
	THROUGH_MEM red_zone_2,"mov FDATA+0x100, %rdx; mov %rdx, -120(%rsp)",-120(%rsp)
	THROUGH_MEM rsp_index,"mov FDATA+0x100, %rdx; mov %rdx, 0x58(%rsp); mov $5, %ecx",0x30(%rsp,%rcx,8)
	THROUGH_MEM gs,"mov $FDATA, %ecx",%gs:0x100(%rcx)
	THROUGH_MEM gs_abs,nop,%gs:FDATA+0x100

	.section .tbss,"awT",@nobits
	.balign	8
tls_slot: .skip 16
	.text
FLOW call_fs
	lea	note_return_address(%rip), %rax
	mov	%rax, %fs:tls_slot@tpoff
	call	*%fs:tls_slot@tpoff
	mov	$8, %ecx
	mov	%rax, %fs:tls_slot@tpoff(%rcx)
	xor	%eax, %eax
	call	*%fs:tls_slot@tpoff(%rcx)
	END
FLOW jmp_fs
	lea	1f(%rip), %rax
	mov	%rax, %fs:tls_slot@tpoff
	jmp	*%fs:tls_slot@tpoff
	ud2
1:	END
FLOW call_rip_mem
	call	*2f(%rip)
	END
	.data
	.balign	8
2:	.quad	note_return_address
	.text
FLOW push_pop_rip_mem
	pushq	2f(%rip)
	popq	%rax
	pushq	%rcx
	popq	2f(%rip)
	mov	2f(%rip), %rbx
	pushw	2f(%rip)
	popw	%dx
	END
	.data
2:	.quad	0x1122334455667788
	.text

/* --- prefixes and lengths of transfers --- */
FLOW prefixed_transfers
	lea	1f(%rip), %rax
	rex.W call *%rax
	.byte	0x3e
	call	*%rax		/* notrack */
	.byte	0xf2
	call	1f		/* bnd */
	.byte	0x2e, 0x48
	call	1f
	lea	2f(%rip), %rdx
	.byte	0x3e, 0xff, 0xe2
	ud2
2:	lea	3f(%rip), %rdx
	rex.WRXB jmp *%rdx	/* B makes it r10 */
	ud2
1:	inc	%ebx
	lea	3f(%rip), %r10
	lea	-1(%rsp), %rsp
	lea	1(%rsp), %rsp
	rep	ret
3:	.byte	0xf2
	jmp	4f
	ud2
4:	push	$0
	lea	5f(%rip), %rax
	mov	%rax, (%rsp)
	.byte	0xf2, 0xc3	/* bnd ret */
5:	END

/* --- returns --- */
FLOW ret_imm16
	mov	%rsp, %rbx
	sub	$0x40, %rsp
	call	1f
	mov	%rsp, %rcx
	lea	2f(%rip), %rax
	push	%rax
	ret	$0
2:	END
1:	ret	$0x40

FLOW ret_imm16_large
	sub	$0xfff0, %rsp
	call	1f
	END
1:	ret	$0xfff0

FLOW push_ret_jump
	lea	1f(%rip), %rax
	push	%rax
	ret
	ud2
1:	lea	2f(%rip), %rax
	push	%rax
	lea	3f(%rip), %rax
	push	%rax
	lea	4f(%rip), %rax
	push	%rax
	ret
2:	END
3:	inc	%ebx
	ret
4:	add	$0x100, %ebx
	ret

FLOW return_address_modified
	call	1f
	ud2
	ud2
2:	call	3f
	ud2
4:	END
1:	addq	$4, (%rsp)
	ret
3:	lea	4b(%rip), %rcx
	xchg	%rcx, (%rsp)
	ret

FLOW return_twice
	xor	%ebx, %ebx
	call	1f
	inc	%ebx
	cmp	$3, %ebx
	je	2f
	sub	$8, %rsp
	ret
2:	END
1:	ret

FLOW call_without_return
	mov	$1000, %ecx
1:	call	2f
	ud2
2:	add	$8, %rsp
	dec	%ecx
	jnz	1b
	END

FLOW call_pop_pc
	call	1f
1:	pop	%rax
	lea	1b(%rip), %rcx
	sub	%rcx, %rax
	call	2f
	.asciz	"data behind the call"
2:	pop	%rdx
	movzbl	(%rdx), %esi
	END

FLOW retpoline
	lea	1f(%rip), %rax
	call	retpoline_rax
	jmp	2f
1:	inc	%ebx
	ret
2:	END
retpoline_rax:
	call	4f
3:	pause
	lfence
	jmp	3b
4:	mov	%rax, (%rsp)
	ret

FLOW longjmp_out_of_depth
	xor	%ebx, %ebx
1:	mov	%rsp, %rbp
	mov	$50, %ecx
	call	2f
	ud2
3:	mov	%rbp, %rsp
	inc	%ebx
	cmp	$20, %ebx
	jb	1b
	call	just_return
	END
2:	dec	%ecx
	jz	3b
	call	2b
	ud2

FLOW recursion_100000
	mov	$100000, %ecx
	xor	%eax, %eax
	call	1f
	END
1:	add	%rcx, %rax
	dec	%ecx
	jz	2f
	call	1b
	rol	$1, %rax
2:	ret

FLOW recursion_mutual
	mov	$5000, %ecx
	xor	%eax, %eax
	call	1f
	END
1:	push	%rcx
	dec	%ecx
	js	3f
	call	2f
	add	%rcx, %rax
3:	pop	%rcx
	ret
2:	push	%rcx
	dec	%ecx
	js	3b
	lea	1b(%rip), %rdx
	call	*%rdx
	xor	%rcx, %rax
	pop	%rcx
	ret

FLOW fibonacci
	mov	$20, %edi
	call	1f
	END
1:	cmp	$2, %edi
	mov	$1, %eax
	jb	2f
	push	%rdi
	dec	%edi
	call	1b
	mov	(%rsp), %rdi
	mov	%rax, (%rsp)
	sub	$2, %edi
	call	1b
	pop	%rcx
	add	%rcx, %rax
2:	ret

FLOW tail_calls
	mov	$100000, %ecx
	xor	%eax, %eax
	lea	2f(%rip), %rdx
	call	1f
	END
1:	inc	%rax
	dec	%ecx
	jz	3f
	jmp	*%rdx
2:	rol	$3, %rax
	dec	%ecx
	jnz	1b
3:	ret

FLOW coroutines
	mov	$FDATA+0x8000, %ebp
	lea	1f(%rip), %rax
	sub	$8, %rbp
	mov	%rax, (%rbp)
	xor	%eax, %eax
2:	inc	%eax
	call	3f
	cmp	$100, %eax
	jb	2b
	END
3:	xchg	%rsp, %rbp
	ret
1:	add	$2, %eax
	call	3b
	jmp	1b

FLOW stack_switch
	mov	%rsp, %rbx
	mov	$FDATA+0x4000, %eax
	xchg	%rsp, %rax
	call	note_return_address
	push	%rax
	pop	%rsp
	call	note_return_address
	mov	$FDATA+0x5000, %ecx
	mov	%rcx, %rsp
	push	%rsp
	mov	(%rsp), %rdx
	push	$FDATA+0x6000
	pop	%rsp
	mov	%rsp, %rsi
	lea	-0x18(%rsp), %rsp
	and	$-64, %rsp
	call	just_return
	mov	%rsp, %rdi
	END

FLOW rsp_odd
	sub	$3, %rsp
	call	note_return_address
	push	%rax
	call	1f
	pop	%rcx
	xor	%eax, %eax		/* no code addresses at odd places for the comparison */
	mov	%rax, -8(%rsp)
	mov	%rax, -16(%rsp)
	END
1:	ret

/* --- push and pop --- */
FLOW push_pop_rsp
	push	%rsp
	mov	(%rsp), %rax
	pop	%rsp
	mov	%rsp, %rcx
	push	%rsp
	push	(%rsp)
	pop	%rdx
	pop	%rbx
	push	$-1
	push	$0x7fffffff
	pop	(%rsp)
	pop	%rsi
	push	8(%rsp)
	pop	8(%rsp)
	push	%rsp
	pop	(%rsp)
	mov	(%rsp), %rdi
	END
FLOW push_pop_16
	pushw	%ax
	pushw	$0x1234
	pushw	%sp
	popw	%dx
	popw	%cx
	popw	%bx
	pushw	$-1
	popw	(%rsp)
	pushfw
	popw	%si
	pushw	%fs
	popw	%di
	END
FLOW pop_mem_uses_new_rsp
	movq	$0, 8(%rsp)
	push	$0x55
	popq	8(%rsp)
	mov	8(%rsp), %rax
	push	$0x66
	popq	-8(%rsp)
	mov	-8(%rsp), %rcx
	END
FLOW red_zone
	.irp	n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
	movq	$\n, -8*\n(%rsp)
	.endr
	xor	%eax, %eax
	jmp	1f
1:	lea	2f(%rip), %rcx
	jmp	*%rcx
2:	cmp	%eax, %eax
	jne	1b
	.irp	n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
	add	-8*\n(%rsp), %rax
	rol	$4, %rax
	.endr
	/* a leaf that uses its red zone and returns */
	call	3f
	END
3:	movq	$0x77, -8(%rsp)
	movq	$0x88, -128(%rsp)
	jmp	4f
4:	mov	-8(%rsp), %rdx
	mov	-128(%rsp), %rbx
	ret
FLOW enter_leave
	mov	$FSTACK_TOP, %ebp
	enter	$32, $0
	mov	%rsp, %rax
	enter	$16, $3
	mov	%rsp, %rcx
	mov	%rbp, %rdx
	leave
	leave
	enterw	$8, $0
	leavew
	END
FLOW flags_push_pop
	push	$0x202|0x8d5|0x400
	popfq
	pushfq
	pop	%rax
	push	$0x200202		/* ID */
	popfq
	pushfq
	pop	%rcx
	push	$0x7202&~0x100|0x4000	/* NT, IOPL: the latter stays */
	popfq
	pushfq
	pop	%rdx
	push	$0x40202		/* AC; everything here is aligned */
	popfq
	pushfq
	pop	%rbx
	push	$2			/* without IF: it stays */
	popfq
	pushfq
	pop	%rsi
	pushw	$0xcd7
	popfw
	pushfw
	popw	%di
	cld
	END

/* --- tables, overlapping code, long blocks --- */
FLOW jump_table
	xor	%ebx, %ebx
	mov	$1000, %ecx
	lea	9f(%rip), %rdx
1:	mov	%ecx, %eax
	and	$7, %eax
	movslq	(%rdx,%rax,4), %rsi
	add	%rdx, %rsi
	notrack jmp *%rsi
	.irp	n,0,1,2,3,4,5,6,7
.Ljt\n:	lea	\n(%rbx,%rbx,2), %rbx
	jmp	2f
	.endr
2:	dec	%ecx
	jnz	1b
	END
	.section .rodata
	.balign	4
9:	.irp	n,0,1,2,3,4,5,6,7
	.long	.Ljt\n - 9b
	.endr
	.text
FLOW jump_table_calls
	xor	%ebx, %ebx
	mov	$1000, %ebp
	lea	9f(%rip), %rdx
1:	mov	%ebp, %eax
	imul	$0x9e3779b1, %eax, %eax
	shr	$29, %eax
	call	*(%rdx,%rax,8)
	dec	%ebp
	jnz	1b
	END
	.irp	n,0,1,2,3,4,5,6,7
.Lct\n:	lea	\n(%rbx,%rbx,4), %rbx
	ret
	.endr
	.section .data.rel.ro,"aw"
	.balign	8
9:	.irp	n,0,1,2,3,4,5,6,7
	.quad	.Lct\n
	.endr
	.text

FLOW overlap_jmp_into_self
	mov	$5, %eax
	.byte	0xeb, 0xff, 0xc0	/* jmp to its second byte: inc %eax */
	END
FLOW overlap_two_readings
	xor	%ebx, %ebx
	xor	%eax, %eax
1:	.byte	0xb8			/* mov $imm32, %eax, or from the next byte: */
2:	.byte	0x83, 0xc3, 0x01, 0x90	/* add $1, %ebx; nop */
	cmp	$3, %ebx
	jae	3f
	rol	$7, %rdx
	test	$1, %dl
	jz	1b
	inc	%ebx
	jmp	2b
3:	END
FLOW overlap_prefix_skipped
	lea	FDATA, %rdi
	mov	$3, %ecx
	mov	$0x41, %al
	cld
	jmp	1f+1
1:	rep stosb			/* once without the prefix, once with */
	cmp	$1, %ecx
	mov	%rcx, OUT(0)
	jb	2f
	jmp	1b
2:	END
FLOW overlap_lock_skipped
	movl	$5, FDATA
	mov	$FDATA, %ecx
	jmp	1f+1
1:	lock decl (%rcx)
	jnz	1b
	END
FLOW long_block
	xor	%eax, %eax
	.rept	6000
	lea	1(%rax,%rax,2), %rax
	add	%rax, %rcx
	.endr
	END
FLOW long_chain_of_branches
	xor	%eax, %eax
	.rept	1000
	inc	%eax
	test	$3, %al
	jz	1f
	jmp	2f
1:	rol	%rcx
2:
	.endr
	END
FLOW hot_loop
	mov	$3000000, %ecx
1:	lea	(%rax,%rcx,2), %rax
	dec	%ecx
	jnz	1b
	END
FLOW longest_instructions
	/* 15 bytes each */
	.byte	0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x48,0x01,0xc8
	.byte	0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x01,0xca
	.byte	0x40,0x41,0x42,0x43,0x44,0x45,0x46,0x47,0x48,0x49,0x4a,0x4b,0x4c,0x01,0xdb
	.byte	0x36,0x36,0x36,0x36,0x36,0x36,0x36,0x36,0x36,0x36,0xe9
	.long	1f - (. + 4)
	ud2
1:	.byte	0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x0f,0x84
	.long	2f - (. + 4)
2:	.byte	0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x2e,0x72,0x00
	.byte	0x26,0x26,0x26,0x26,0x26,0x26,0x26,0x26,0x26,0x26,0xe8
	.long	3f - (. + 4)
	.byte	0x65,0x65,0x65,0x48,0x81,0x84,0x24
	.long	8
	.byte	0x44,0x33
	.byte	0x22,0x11
	.byte	0x90
	END
3:	.byte	0xf3,0xf3,0xf3,0xf3,0xf3,0xf3,0xf3,0xf3,0xf3,0xf3,0xf3,0xf3,0xf3,0xf3,0xc3
	.section .note.GNU-stack,"",@progbits

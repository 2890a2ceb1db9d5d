/* Strings, far transfers, system-facing and segment instructions, invalid encodings, faults and their repair. */
#include "flow.h"

/* --- strings --- */
/* FDATA: 256 bytes that count up, then copies to compare. */
#define FILL_DATA \
	mov $FDATA, %edi; xor %eax, %eax; \
76:	mov %al, (%rdi); movb $0, 0x100(%rdi); inc %rdi; inc %al; jnz 76b
.macro STRING name, setup, insn:vararg
FLOW string_\name
	FILL_DATA
	\setup
	\insn
	cld
	mov	$FDATA, %r8d
	xor	%r9d, %r9d
1:	rol	$3, %r9
	xor	(%r8), %r9
	add	$8, %r8d
	cmp	$FDATA+0x200, %r8d
	jb	1b
	END
.endm
	STRING movsb_up,"mov $FDATA, %esi; mov $FDATA+0x100, %edi; mov $100, %ecx",rep movsb
	STRING movsq_down,"mov $FDATA+0xf8, %esi; mov $FDATA+0x1f8, %edi; mov $20, %ecx; std",rep movsq
	STRING movsw_overlap,"mov $FDATA, %esi; mov $FDATA+1, %edi; mov $70, %ecx",rep movsw
	STRING movsb_overlap_down,"mov $FDATA+0x80, %esi; mov $FDATA+0x81, %edi; mov $100, %ecx; std",rep movsb
	STRING movsb_none,"mov $FDATA, %esi; mov $FDATA+0x100, %edi; xor %ecx, %ecx",rep movsb
	STRING movsb_a32,"movabs $0xabcd00000000+FDATA, %rsi; movabs $0x123400000000+FDATA+0x100, %rdi; movabs $0x777700000010, %rcx",addr32 rep movsb
	STRING movsb_a32_none,"mov $FDATA, %esi; mov $FDATA+0x100, %edi; movabs $0x777700000000, %rcx",addr32 rep movsb
	STRING stosd_down,"mov $FDATA+0xfc, %edi; mov $30, %ecx; mov $0x12345678, %eax; std",rep stosl
	STRING stosb_16000,"mov $FDATA+0x1000, %edi; mov $16000, %ecx; mov $0x5a, %eax",rep stosb
	STRING lodsq_many,"mov $FDATA, %esi; mov $9, %ecx",rep lodsq
	STRING cmpsb_equal,"mov $FDATA, %esi; mov $FDATA, %edi; mov $50, %ecx",repe cmpsb
	STRING cmpsb_differs,"mov $FDATA, %esi; mov $FDATA+0x20, %edi; movb $7, FDATA+7; movb $0, FDATA+0x20; movb $1, FDATA+0x21; mov $50, %ecx",repe cmpsb
	STRING cmpsl_until_equal,"mov $FDATA, %esi; mov $FDATA+0x100, %edi; movl $0x0f0e0d0c, FDATA+0x10c; mov $50, %ecx",repne cmpsl
	STRING scasb,"mov $FDATA, %edi; mov $77, %eax; mov $200, %ecx",repne scasb
	STRING scasb_down,"mov $FDATA+0xff, %edi; mov $77, %eax; mov $250, %ecx; std",repne scasb
	STRING scasw_while,"mov $FDATA+0x100, %edi; xor %eax, %eax; movb $1, FDATA+0x155; mov $250, %ecx",repe scasw
	STRING scasb_none,"mov $FDATA, %edi; xor %ecx, %ecx; cmp %eax, %ecx",repe scasb
	STRING flags_kept,"mov $FDATA, %esi; mov $FDATA+0x100, %edi; mov $5, %ecx; stc",rep movsb; sbb %rbx, %rbx
	STRING gs_source,"mov $FDATA, %esi; mov $FDATA+0x100, %edi; mov $5, %ecx",.byte 0x65; rep movsb
	STRING prefix_order,"mov $FDATA, %esi; mov $FDATA+0x100, %edi; mov $5, %ecx",.byte 0xf3,0x66,0xa5
	STRING both_reps,"mov $FDATA, %esi; mov $FDATA+0x100, %edi; mov $5, %ecx",.byte 0xf2,0xf3,0xa6

	.section .tbss,"awT",@nobits
	.balign	64
tls_bytes: .skip 64
	.text
FLOW string_fs_source
	movq	$0x1234567, %fs:tls_bytes@tpoff
	movq	$-3, %fs:tls_bytes@tpoff+8
	mov	$tls_bytes@tpoff, %rsi
	mov	$FDATA, %edi
	mov	$2, %ecx
	cld
	.byte	0x64
	rep movsq
	sub	$tls_bytes@tpoff, %rsi
	mov	%rsi, OUT(1)
	sub	$FDATA, %rdi
	mov	$tls_bytes@tpoff, %rsi
	.byte	0x64
	lodsq
	mov	%rax, OUT(0)
	mov	$tls_bytes@tpoff, %rsi
	mov	$FDATA, %edi
	.byte	0x64
	cmpsq
	mov	$tls_bytes@tpoff, %rbx
	mov	$3, %al
	.byte	0x64
	xlatb
	xor	%esi, %esi
	xor	%ebx, %ebx
	END
FLOW xlat
	mov	$FDATA, %ebx
	movb	$0x42, FDATA+0xfe
	mov	$0xfe, %al
	xlatb
	movabs	$0x9999000000000000+FDATA, %rbx
	mov	$0xfe, %ah
	addr32 xlatb
	END

/* --- atomic --- */
FLOW cmpxchg16b
	mov	$FDATA, %edi
	movq	$1, (%rdi)
	movq	$2, 8(%rdi)
	mov	$1, %eax
	mov	$2, %edx
	mov	$3, %ebx
	mov	$4, %ecx
	lock cmpxchg16b (%rdi)
	setz	%r8b
	lock cmpxchg16b (%rdi)
	setz	%r9b
	mov	%rax, OUT(0)
	mov	%rdx, OUT(1)
	cmpxchg8b (%rdi)
	setz	%r10b
	END
FLOW cmpxchg_rip
	mov	$5, %eax
	lock cmpxchg %rcx, 1f(%rip)
	mov	1f(%rip), %rdx
	lock cmpxchg %rbx, 1f(%rip)
	lock xadd %rsi, 1f(%rip)
	xchg	%rdi, 1f(%rip)
	lock incq 1f(%rip)
	lock btsq $63, 1f(%rip)
	mov	1f(%rip), %r8
	mov	%r12, 1f(%rip)
	movq	$5, 1f(%rip)
	END
	.data
	.balign	16
1:	.quad	5
	.text

/* --- far --- */
FLOW lret
	mov	%cs, %eax
	lea	1f(%rip), %rcx
	push	%rax
	push	%rcx
	lretq
	ud2
1:	mov	%cs, %eax
	lea	2f(%rip), %rcx
	sub	$32, %rsp
	push	%rax
	push	%rcx
	lretq	$32
	ud2
2:	END
FLOW iretq
	mov	%rsp, %rbx
	lea	-0x100(%rsp), %rdx
	mov	%ss, %eax
	push	%rax
	push	%rdx
	push	$0x202|0x8d5
	mov	%cs, %eax
	push	%rax
	lea	1f(%rip), %rcx
	push	%rcx
	iretq
	ud2
1:	mov	%rsp, %rsi
	END
/* With 32-bit offsets, because AMD has no others; so the code is at FDATA, and r12 leads back. */
FLOW ljmp_lcall
	mov	$FDATA, %edi
	movl	$FDATA+0x100, (%rdi)
	mov	%cs, 4(%rdi)
	movl	$0xe4ff4190, 0x100(%rdi)	/* nop; jmp *%r12 */
	lea	1f(%rip), %r12
	ljmp	*(%rdi)
	ud2
1:	movl	$FDATA+0x300, (%rdi)
	movl	$0xff411fff, 0x200(%rdi)	/* lcall *(%rdi); jmp *%r12 */
	movb	$0xe4, 0x204(%rdi)
	movb	$0xcb, 0x300(%rdi)		/* lret */
	lea	2f(%rip), %r12
	mov	%rdi, %rax
	add	$0x200, %rax
	jmp	*%rax
2:	END

/* --- the system --- */
FLOW syscall_registers
	mov	$39, %eax		/* getpid: only that it worked counts */
	push	$0x202|0x8d5
	popfq
	syscall
1:	test	%rax, %rax
	setg	%al
	movzbl	%al, %eax
	cmp	$1, %eax
	END
FLOW syscall_unknown
	mov	$0xfffff, %eax
	std
	syscall
	cld
	END
FLOW xgetbv
	xor	%ecx, %ecx
	xgetbv
	END
FLOW cpuid_vendor
	xor	%eax, %eax
	cpuid
	END
FLOW cpuid_features
	mov	$7, %eax
	xor	%ecx, %ecx
	cpuid
	END
FLOW time_stamp
	rdtsc
	shl	$32, %rdx
	lea	(%rax,%rdx), %rbx
	rdtscp
	shl	$32, %rdx
	add	%rdx, %rax
	sub	%rbx, %rax
	mov	$1<<32, %rcx
	cmp	%rcx, %rax		/* later, but not by much */
	sbb	%rax, %rax
	xor	%edx, %edx
	xor	%ebx, %ebx
	xor	%ecx, %ecx
	cmp	%eax, %eax
	END
FLOW random_number
	mov	$1, %eax
	xor	%ecx, %ecx
	cpuid
	bt	$30, %ecx
	jnc	2f
1:	rdrand	%rax
	jnc	1b
2:	mov	$1, %eax
	xor	%ebx, %ebx
	xor	%ecx, %ecx
	xor	%edx, %edx
	END
FLOW processor_id
	mov	$0x7b, %eax
	lsl	%eax, %eax		/* faults nowhere; the result is the processor */
	setz	%cl
	xor	%eax, %eax
	END
FLOW fs_base
	rdfsbase %rax
	cmp	%fs:0, %rax
	sete	%cl
	xor	%eax, %eax
	END
FLOW fs_base_written
	rdfsbase %rbx
	mov	$FDATA, %eax
	mov	%rbx, 0x10(%rax)
	wrfsbase %rax
	movq	$0x55, %fs:8
	mov	%fs:8, %rdx
	rdfsbase %rcx
	mov	$102, %eax		/* getuid, with another fs */
	syscall
	mov	%fs:0x10, %rbx
	wrfsbase %rbx
	xor	%ebx, %ebx
	xor	%eax, %eax
	movq	$0, FDATA+0x10
	END
FLOW gs_base_written
	rdgsbase %rbx
	mov	$FDATA, %eax
	wrgsbase %rax
	movq	$0x55, %gs:8
	mov	%gs:8, %rdx
	rdgsbase %rcx
	mov	$8, %esi
	add	%gs:(%rsi), %rdx
	lea	1f(%rip), %r8
	mov	%r8, %gs:0x20
	call	*%gs:0x20
	pushq	%gs:8
	popq	%gs:0x28
	mov	$8, %esi
	.byte	0x65
	lodsb
	movaps	%gs:0x30, %xmm0
	lock incl %gs:8
	wrgsbase %rbx
	mov	FDATA+8, %rdi
	movq	$0, FDATA+0x20
	END
1:	ret
FLOW gs_base_by_call
	mov	$158, %eax		/* arch_prctl(ARCH_SET_GS) */
	mov	$0x1001, %edi
	mov	$FDATA, %esi
	syscall
	movq	$0x66, %gs:0x18
	mov	%gs:0x18, %rdx
	rdgsbase %rbx
	mov	$158, %eax		/* ARCH_GET_GS */
	mov	$0x1004, %edi
	mov	$FDATA+0x40, %esi
	syscall
	mov	FDATA+0x40, %r8
	mov	$158, %eax
	mov	$0x1001, %edi
	xor	%esi, %esi
	syscall
	rdgsbase %r9
	END
FLOW segment_registers
	mov	%cs, %eax
	mov	%ss, %ecx
	mov	%ds, %edx
	mov	%es, %ebx
	mov	%fs, %esi
	mov	%gs, %edi
	xor	%r8d, %r8d
	mov	%r8d, %ds
	mov	%r8d, %es
	mov	%r8d, %gs
	mov	%ss, %r9d
	mov	%r9d, %ss
	mov	%r9d, %ds
	mov	%ds, %r10d
	mov	%edx, %ds
	push	%fs
	push	%gs
	pop	%r11
	pop	%r12
	push	$0
	pop	%gs
	END

/* --- extended state --- */
/* Saves with the instruction, destroys, restores, and sums what came back. Needs AVX. */
.macro EXTENDED save
FLOW state_\save
	cmpl	$0, flow_avx(%rip)
	je	2f
	mov	$FDATA, %edi
	xor	%eax, %eax
	mov	$4096/8, %ecx
	cld
	rep stosq
	mov	$FDATA, %edi
	.irp	n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	mov	$0x01010101*\n, %eax
	vmovd	%eax, %xmm\n
	vpermilps $0x11*\n, %ymm\n, %ymm\n
	vinsertf128 $1, %xmm\n, %ymm\n, %ymm\n
	.endr
	fninit
	fldpi
	fld1
	mov	$7, %eax
	xor	%edx, %edx
	\save	(%rdi)
	vzeroall
	fninit
	mov	$7, %eax
	xrstor64 (%rdi)
	.irp	n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	vmovups	%ymm\n, 0x2000+32*\n(%rdi)
	.endr
	fstpl	0x2400(%rdi)
	fstpl	0x2408(%rdi)
	vzeroall
	mov	$FDATA, %edi		/* the image itself is the processor's business */
	xor	%eax, %eax
	mov	$4096/8, %ecx
	rep stosq
2:	xor	%eax, %eax
	END
.endm
	EXTENDED	xsave64
	EXTENDED	xsave
	EXTENDED	xsavec64
	EXTENDED	xsaveopt64
FLOW state_fxsave
	mov	$FDATA, %edi
	fninit
	fldpi
	mov	$0x1234, %eax
	movd	%eax, %xmm7
	fxsave64 (%rdi)
	pxor	%xmm7, %xmm7
	fninit
	fxrstor64 (%rdi)
	fstpl	0x300(%rdi)
	movd	%xmm7, %ecx
	mov	%rcx, %r8
	xor	%eax, %eax		/* the image holds instruction pointers and what was in other registers */
	mov	$512/8, %ecx
	cld
	rep stosq
	END
FLOW x87_instruction_pointer
	fninit
	fldz
	fnstenv	FDATA
	mov	FDATA+12, %eax		/* of fldz: as the CPU reports it */
	lea	1f(%rip), %rcx
	sub	%ecx, %eax
1:	movl	$0, FDATA+12
	movl	$0, FDATA+16
	xor	%ecx, %ecx
	cmp	%eax, %eax
	fninit
	END
FLOW x87_exception_later
	RESUME_AT(2f)
	fninit
	movw	$0x37b, FDATA		/* unmask division by zero */
	fldcw	FDATA
	fld1
	fldz
	fdivrp				/* raises it ... */
	mov	$1, %eax
1:	fwait				/* ... here */
	mov	$2, %eax
2:	fnclex
	END
FLOW mxcsr_kept
	movl	$0x5f80, FDATA
	ldmxcsr	FDATA
	call	1f
	stmxcsr	FDATA+4
	mov	FDATA+4, %eax
	movl	$0x1f80, FDATA
	ldmxcsr	FDATA
	END
1:	ret

/* --- faults --- */
.macro FAULT name, setup, insn:vararg
FLOW fault_\name
	\setup
	RESUME_AT(1f)
	\insn
	inc	%ebx			/* not if it faults */
1:	END
.endm
	FAULT	int3,nop,int3
	FAULT	int3_long,nop,.byte 0xcd, 3
	FAULT	int1,nop,.byte 0xf1
	FAULT	int4,nop,int $4
	FAULT	int16,nop,int $16
	FAULT	into,nop,.byte 0xce
	FAULT	ud2,nop,ud2
	FAULT	ud1,"mov $FDATA, %eax",ud1 (%rax), %ecx
	FAULT	hlt,nop,hlt
	FAULT	cli,nop,cli
	FAULT	div0,"xor %ecx, %ecx",div %rcx
	FAULT	div_overflow,"mov $1, %ecx; mov $2, %edx",div %rcx
	FAULT	idiv_overflow,"mov $-1, %rcx; xor %edx, %edx; xor %eax, %eax; bts $63, %rax; cqto",idiv %rcx
	FAULT	movaps,"mov $FDATA+8, %eax",movaps (%rax), %xmm0
	FAULT	movaps_rip,nop,movaps just_return+1(%rip), %xmm0
	FAULT	null,"xor %eax, %eax",mov (%rax), %ecx
	FAULT	noncanonical,"movabs $0x8000000000000000, %rax",mov %ecx, (%rax)
	FAULT	noncanonical_stack,"movabs $0x8000000000000000, %rbp",mov %ecx, (%rbp)
	FAULT	jmp_null,"xor %eax, %eax",jmp *%rax
	FAULT	call_null,"xor %eax, %eax",call *%rax
	FAULT	jmp_noncanonical,"movabs $0x8000000000000000, %rax",jmp *%rax
	FAULT	call_noncanonical,"movabs $0x8000000000000000, %rax",call *%rax
	FAULT	ret_null,"push $0",ret
	FAULT	ret_noncanonical,"movabs $0x1234567812345678, %rax; push %rax",ret
	FAULT	jmp_kernel,"mov $-4096, %rax",jmp *%rax
	FAULT	jmp_noexec,"mov $FSTACK_TOP, %eax",jmp *%rax
	FAULT	call_mem_null,"xor %eax, %eax",call *(%rax)
	FAULT	jmp_mem_null,"xor %edx, %edx",jmp *0x10(%rdx)
	FAULT	write_code,"lea just_return(%rip), %rax",movb $0x90, (%rax)
	FAULT	lret_bad,"push $0x77; push $0x1000",lretq
	FAULT	iret_bad,"push $0; push $0; push $0x202; push $0x77; push $0",iretq
	FAULT	int_flags_live,"stc",int3

/* Encodings that are no instructions. */
.macro BAD name, bytes:vararg
FLOW bad_\name
	RESUME_AT(1f)
	.byte	\bytes
	.fill	16, 1, 0x90
1:	END
.endm
	.irp	op,0x06,0x07,0x0e,0x16,0x17,0x1e,0x1f,0x27,0x2f,0x37,0x3f,0x60,0x61,0x82,0x9a,0xce,0xd4,0xd5,0xd6,0xea
	BAD	\op,\op
	.endr
	.irp	op,0x04,0x0a,0x0c,0x24,0x25,0x26,0x27,0x36,0x39,0x3b,0x3c,0x3d,0x3e,0x3f,0x7a,0x7b,0xa6,0xa7,0xff
	BAD	0f_\op,0x0f, \op, 0xc0
	.endr
	BAD	lock_mov,0xf0, 0x89, 0x03
	BAD	lock_add_reg,0xf0, 0x01, 0xc0
	BAD	lock_nop,0xf0, 0x90
	BAD	lock_cmp,0xf0, 0x39, 0x03
	BAD	lock_bt,0xf0, 0x0f, 0xa3, 0x03
	BAD	lock_jmp,0xf0, 0xeb, 0x00
	BAD	lock_ret,0xf0, 0xc3
	BAD	vex_66,0x66, 0xc5, 0xf8, 0x28, 0xc1
	BAD	vex_f3,0xf3, 0xc5, 0xf8, 0x28, 0xc1
	BAD	vex_rex,0x48, 0xc5, 0xf8, 0x28, 0xc1
	BAD	vex_lock,0xf0, 0xc5, 0xf8, 0x28, 0xc1
	BAD	vex_vvvv,0xc5, 0xb8, 0x28, 0xc1
	BAD	vex_map0,0xc4, 0xe0, 0x78, 0x28, 0xc1
	BAD	vex_map31,0xc4, 0xff, 0x78, 0x28, 0xc1
	BAD	evex_reserved,0x62, 0xf1, 0x78, 0x48, 0x28, 0xc1
	BAD	xop_unknown,0x8f, 0xe8, 0x78, 0x01, 0xc1
	BAD	lea_reg,0x8d, 0xc0
	BAD	mov_cs,0x8e, 0xc8
	BAD	mov_seg6,0x8e, 0xf0
	BAD	group11,0xc7, 0xc8, 0, 0, 0, 0
	BAD	group4,0xfe, 0xd0
	BAD	group5_7,0xff, 0xf8
	BAD	lcall_reg,0xff, 0xd8
	BAD	pop_group,0x8f, 0xc8
	BAD	mov_cr1,0x0f, 0x20, 0xc8
	BAD	too_long,0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x01, 0xc0
	BAD	too_long_jmp,0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0xeb, 0x00
	BAD	prefixes_only,0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66
	BAD	movdq2q_mem,0xf2, 0x0f, 0xd6, 0x03
	BAD	pinsr_none,0xf3, 0x0f, 0xc4, 0xc0, 0
	BAD	sse_f2,0xf2, 0x0f, 0x28, 0xc1

/* An instruction that touches the protected page FGUARD: the handler notes all registers and lifts the protection, and
 * the instruction runs again. Half-done work before the fault shows. prepare fills the page, setup sets registers. */
.macro REPAIR name, prepare, setup, insn:vararg
FLOW repair_\name
	\prepare
	mov	$10, %eax		/* mprotect(FGUARD, 4096, PROT_NONE) */
	mov	$FGUARD, %edi
	mov	$4096, %esi
	xor	%edx, %edx
	syscall
	movl	$1, flow_repair(%rip)
	movabs	$0x1112131415161701, %rcx
	movabs	$0xb1b2b3b4b5b6b70b, %r11
	\setup
	stc
	\insn
1:	END
.endm
	.globl	flow_repair, flow_avx
	.comm	flow_repair,4,4
	.comm	flow_avx,4,4
	REPAIR	mov_load,"movq $0x77, FGUARD",nop,mov FGUARD, %rax
	REPAIR	mov_store,nop,nop,mov %rcx, FGUARD
	REPAIR	add_store,"movq $0x77, FGUARD","mov $FGUARD, %ebx",adc %rcx, (%rbx)
	REPAIR	straddle,nop,nop,mov %rcx, FGUARD-4
	REPAIR	push,nop,"mov $FGUARD+8, %esp",push %rcx
	REPAIR	push_rsp,nop,"mov $FGUARD+8, %esp",push %rsp
	REPAIR	push_imm,nop,"mov $FGUARD+8, %esp",push $-7
	REPAIR	pushf,nop,"mov $FGUARD+0x1000, %esp",pushfq
	REPAIR	push_mem,"movq $0x77, FGUARD","mov $FGUARD, %ebx",push (%rbx)
	REPAIR	push_mem_both,"movq $0x77, FGUARD-8","mov $FGUARD+8, %esp",push FGUARD-8
	REPAIR	pop,"movq $0x77, FGUARD","mov $FGUARD, %esp",pop %rdx
	REPAIR	pop_rsp,"movq $0x77, FGUARD","mov $FGUARD, %esp",pop %rsp
	REPAIR	pop_mem,nop,"push $5",pop FGUARD
	REPAIR	pop_mem_rsp,"movq $0x77, FGUARD-8","mov $FGUARD-8, %esp",pop (%rsp)
	REPAIR	popf,"movq $0x247, FGUARD","mov $FGUARD, %esp",popfq
	REPAIR	call,nop,"mov $FGUARD+8, %esp",call 1f
	REPAIR	call_reg,nop,"mov $FGUARD+8, %esp; lea 1f(%rip), %rcx",call *%rcx
	REPAIR	call_mem_stack,"lea 1f(%rip), %rax; mov %rax, FDATA","mov $FGUARD+8, %esp",call *FDATA
	REPAIR	call_mem_load,"lea 1f(%rip), %rax; mov %rax, FGUARD","mov $FGUARD, %ecx",call *(%rcx)
	REPAIR	call_mem_rsp,"lea 1f(%rip), %rax; mov %rax, FGUARD","mov $FGUARD, %esp",call *(%rsp)
	REPAIR	jmp_mem,"lea 1f(%rip), %rax; mov %rax, FGUARD","mov $FGUARD, %edx",jmp *(%rdx)
	REPAIR	ret,"lea 1f(%rip), %rax; mov %rax, FGUARD","mov $FGUARD, %esp",ret
	REPAIR	ret_imm,"lea 1f(%rip), %rax; mov %rax, FGUARD","mov $FGUARD, %esp",ret $24
	REPAIR	lret,"lea 1f(%rip), %rax; mov %rax, FGUARD; mov %cs, FGUARD+8; movw $0, FGUARD+10; movl $0, FGUARD+12","mov $FGUARD, %esp",lretq
	REPAIR	enter,nop,"mov $FGUARD+8, %esp",enter $16, $0
	REPAIR	leave,"movq $0x77, FGUARD","mov $FGUARD, %ebp",leave
	REPAIR	xchg,"movq $0x77, FGUARD",nop,xchg %rcx, FGUARD
	REPAIR	cmpxchg,"movq $0x77, FGUARD","mov $0x77, %eax",lock cmpxchg %rcx, FGUARD
	REPAIR	xadd,"movq $0x77, FGUARD",nop,lock xadd %rcx, FGUARD
	REPAIR	movs,"movq $0x77, FGUARD","mov $FGUARD, %esi; mov $FDATA, %edi",movsq
	REPAIR	rep_movs,nop,"mov $FDATA, %esi; mov $FGUARD-40, %edi; mov $90, %ecx",rep movsb
	REPAIR	rep_movs_load,"movq $0x77, FGUARD","mov $FGUARD-40, %esi; mov $FDATA, %edi; mov $12, %ecx",rep movsq
	REPAIR	rep_movs_down,nop,"mov $FDATA+0x100, %esi; mov $FGUARD+0x1010, %edi; mov $40, %ecx; std",rep movsb
	REPAIR	rep_stos,nop,"mov $FGUARD-40, %edi; mov $90, %ecx",rep stosb
	REPAIR	rep_scas,"movb $0x99, FGUARD+5","mov $FGUARD-40, %edi; mov $90, %ecx; mov $0x99, %al",repne scasb
	REPAIR	rep_cmps,"movb $0x99, FGUARD+5","mov $FGUARD-40, %edi; mov $90, %ecx; mov $FGUARD+0x1000, %esi",repe cmpsb
	REPAIR	movups,nop,"movd %ecx, %xmm0",movups %xmm0, FGUARD-8
	REPAIR	fst,nop,"fninit; fldpi",fstpl FGUARD
	REPAIR	fld,"movq $0x77, FGUARD",fninit,fldl FGUARD
	REPAIR	cmov_load,"movq $0x77, FGUARD",nop,cmovc FGUARD, %rdx
	REPAIR	cmov_not,"movq $0x77, FGUARD",nop,cmovnc FGUARD, %rdx
	REPAIR	setcc,nop,nop,setc FGUARD
	REPAIR	bts,nop,"mov $4100*8, %ecx; mov $FGUARD-4096, %ebx",bts %rcx, (%rbx)
	REPAIR	shld,"movq $0x77, FGUARD",nop,shld $5, %rcx, FGUARD
	REPAIR	mul,"movq $0x77, FGUARD",nop,mulq FGUARD
	REPAIR	div,"movq $0x77, FGUARD","xor %edx, %edx",divq FGUARD
	REPAIR	neg,"movq $0x77, FGUARD",nop,negq FGUARD
	REPAIR	rcl,"movq $0x77, FGUARD",nop,rclq FGUARD
	REPAIR	xlat,"movb $0x77, FGUARD+5","mov $FGUARD, %ebx; mov $5, %al",xlatb
	REPAIR	gs,"movq $0x77, FGUARD","mov $FGUARD, %ebx",mov %gs:(%rbx), %rdx

/* The lowest slot of a stack that ends at an inaccessible page: these do not fault. */
	REPAIR	edge_call,nop,"mov $FGUARD+0x1000+8, %esp",call just_return
	REPAIR	edge_call_reg,nop,"mov $FGUARD+0x1000+8, %esp; lea just_return(%rip), %rdx",call *%rdx
	REPAIR	edge_call_mem,"lea just_return(%rip), %rax; mov %rax, FGUARD+0x1000+0x10","mov $FGUARD+0x1000+8, %esp",call *8(%rsp)
	REPAIR	edge_ret,"lea 1f(%rip), %rax; mov %rax, FGUARD+0x1000","mov $FGUARD+0x1000, %esp",ret
	REPAIR	edge_ret_imm,"lea 1f(%rip), %rax; mov %rax, FGUARD+0x1000","mov $FGUARD+0x1000, %esp",ret $8
	REPAIR	edge_push,nop,"mov $FGUARD+0x1000+8, %esp",push %rcx
	REPAIR	edge_pushf,nop,"mov $FGUARD+0x1000+8, %esp",pushfq
	REPAIR	edge_pop,"movq $0x77, FGUARD+0x1000","mov $FGUARD+0x1000, %esp",pop %rcx
	REPAIR	edge_popf,"movq $0x247, FGUARD+0x1000","mov $FGUARD+0x1000, %esp",popfq
	REPAIR	edge_jmp_reg,"lea 1f(%rip), %rdx","mov $FGUARD+0x1000, %esp; lea 1f(%rip), %rdx",jmp *%rdx
	REPAIR	edge_jcc,nop,"mov $FGUARD+0x1000, %esp",jc 1f
	.section .note.GNU-stack,"",@progbits

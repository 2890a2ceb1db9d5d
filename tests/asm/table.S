/* cases.bin, built in. */
	.section .rodata
	.globl	cases_bin, cases_bin_end
	.balign	64
cases_bin:
	.incbin	"cases.bin"
cases_bin_end:
	.section .note.GNU-stack,"",@progbits

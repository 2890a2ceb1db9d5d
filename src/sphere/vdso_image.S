/* The vDSO of src/vdso, as bytes. */
    .section .rodata
    .globl vdso_image, vdso_image_end
    .hidden vdso_image, vdso_image_end
    .balign 4096
vdso_image:
    .incbin "vdso.so"
vdso_image_end:

    .section .note.GNU-stack, "", @progbits

/* The gate: the one place where the program's system calls are issued.
 * A signal that arrives between the check and the syscall instruction must not wait for the call to end: the handler moves
 * a pc in [gate_check, gate_insn] to gate_abort, and the program issues its call again after the handler has run. The same
 * happens when the kernel wants the call restarted (it sets the pc back to gate_insn). */
#include "engine/tblock.h"

    .text
    .globl gate_issue, gate_check, gate_insn, gate_done, gate_abort
    .hidden gate_issue, gate_check, gate_insn, gate_done, gate_abort

/* A call with rdi = number, rsi = its arguments, as long as nothing is pending. */
.macro issue place
    mov %rdi, %rax
    mov %rsi, %r11
    mov (%r11), %rdi
    mov 8(%r11), %rsi
    mov 16(%r11), %rdx
    mov 24(%r11), %r10
    mov 32(%r11), %r8
    mov 40(%r11), %r9
\place\()_check:
    cmpq $0, %gs:TB_PENDING
    jne gate_abort
\place\()_insn:
    syscall
\place\()_done:
    ret
.endm

/* long gate_issue(long nr, const uint64_t args[6]) */
gate_issue:
    issue gate
gate_abort:
    mov $-4096, %rax /* GATE_ABORTED */
    ret

/* long gate_ask(long nr, const uint64_t args[6]): the same from another place, where a filter of ours in the kernel asks a listener
 * of the program's (listener.h). */
    .globl gate_ask, ask_check, ask_insn, ask_done
    .hidden gate_ask, ask_check, ask_insn, ask_done
gate_ask:
    issue ask

/* long guest_copy(void *to, const void *from, size_t n): 0, or n bytes not copied because a page could not be touched.
 * Small objects go by words, which is quicker; a word that faults is tried again by bytes. */
    .globl guest_copy, guest_copy_words, guest_copy_insn, guest_copy_end
    .hidden guest_copy, guest_copy_words, guest_copy_insn, guest_copy_end
guest_copy:
    mov %rdx, %rcx
    cmp $128, %rcx
    ja guest_copy_insn
guest_copy_words:
    cmp $8, %rcx
    jb 1f
    mov (%rsi), %rax
    mov %rax, (%rdi)
    add $8, %rsi
    add $8, %rdi
    sub $8, %rcx
    jmp guest_copy_words
1:
    cmp $4, %rcx
    jb 2f
    mov (%rsi), %eax
    mov %eax, (%rdi)
    add $4, %rsi
    add $4, %rdi
    sub $4, %rcx
2:
    jrcxz guest_copy_end
3:
    mov (%rsi), %al
    mov %al, (%rdi)
    inc %rsi
    inc %rdi
    dec %rcx
    jnz 3b
    jmp guest_copy_end
guest_copy_insn:
    rep movsb
guest_copy_end:
    mov %rcx, %rax
    ret

/* long clone_thread(long nr, const uint64_t args[6], struct thread *child): the child starts in thread_child on its
 * own runtime stack (set by the arguments) */
    .globl clone_thread
    .hidden clone_thread
clone_thread:
    push %rbx
    mov %rdx, %rbx
    mov %rdi, %rax
    mov %rsi, %r11
    mov (%r11), %rdi
    mov 8(%r11), %rsi
    mov 16(%r11), %rdx
    mov 24(%r11), %r10
    mov 32(%r11), %r8
    mov 40(%r11), %r9
    syscall
    test %rax, %rax
    jz 1f
    pop %rbx
    ret
1:
    mov %rbx, %rdi
    xor %ebp, %ebp
    call thread_child
    ud2

/* What the kernel calls for a signal: the program's AC flag must not reach C code. */
    .globl signal_entry
    .hidden signal_entry
signal_entry:
    pushfq
    andl $~0x40000, (%rsp)
    popfq
    jmp signals_handle

/* The end of every signal handler of ours. */
    .globl signal_restorer
    .hidden signal_restorer
signal_restorer:
    mov $15, %eax
    syscall
    ud2

    .section .note.GNU-stack, "", @progbits

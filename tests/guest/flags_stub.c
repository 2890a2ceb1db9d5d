/* Calls through a linker's stub, whose destination reads flags that nobody gave it: what it sees must be the same at replay, whatever
 * was counted on the way. It goes into a system call's argument, which replay compares. */
#include "guest.h"
#include <sys/syscall.h>

__asm__(".pushsection .text\n"
        "  .balign 16\n"
        "stub_lazy: jmp *to_lazy(%rip)\n  push $0\n  jmp stub_lazy\n"
        "  .balign 16\n"
        "stub_now: jmp *to_now(%rip)\n  .byte 0x66, 0x90\n"
        "  .balign 16\n"
        "stub_marked: endbr64\n  jmp *to_marked(%rip)\n  .byte 0x66, 0x0f, 0x1f, 0x44, 0, 0\n"
        "close_flags: mov $-1, %edi\n  mov $3, %eax\n"                                      /* close(-1); r11 = flags */
        "  syscall\n  mov %r11, %rsi\n  mov $-1, %edi\n  mov $72, %eax\n  syscall\n  ret\n" /* fcntl(-1, flags) */
        ".popsection\n"
        ".pushsection .data\n"
        "  .balign 8\n"
        "to_lazy: .quad close_flags\nto_now: .quad close_flags\nto_marked: .quad close_flags\n"
        ".popsection\n");

#define CALL(stub)                                                                        \
    __asm__ volatile("sub $128, %%rsp\n  cmp %1, %0\n  call " #stub "\n  add $128, %%rsp" \
                     :                                                                    \
                     : "r"(i % 7), "r"(i % 5)                                             \
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc")

int main(void) {
    for (long i = 0; i < 300; i++) {
        CALL(stub_lazy);
        CALL(stub_now);
        CALL(stub_marked);
    }
    return finish();
}

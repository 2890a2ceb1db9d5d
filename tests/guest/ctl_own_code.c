/* Code that reads its own bytes: checksums of a function before and after running it, data between code, jump tables,
 * rip-relative reads of the text, overlapping instructions, and a copy of a function that is run elsewhere. */
#include "guest.h"

extern const uint8_t blob_start[], blob_end[], copied_start[], copied_end[];
long blob(long), overlap(long), copied(long);
__asm__(
    ".text\n.globl blob\nblob_start:\n"
    "blob: lea 1f(%rip), %rax\n movzbl (%rax,%rdi), %eax\n jmp 2f\n"
    "1: .byte 10, 20, 30, 40\n"
    "2: imul $3, %rax, %rax\n ret\nblob_end:\n"
    /* overlap(x): for odd x jumps into the middle of an instruction: mov $0xc3c80190, %eax holds add %ecx,%eax; ret */
    "overlap: mov $5, %ecx\n mov $1, %eax\n test $1, %dil\n jz 3f\n jmp 3f+2\n"
    "3: .byte 0xb8, 0x90, 0x01, 0xc8, 0xc3\n.byte 0xc3\n"
    "copied_start:\ncopied: lea (%rdi,%rdi,4), %rax\n cmp $100, %rax\n jl 4f\n sub $100, %rax\n 4: ret\ncopied_end:\n");

static uint32_t sum(const uint8_t *p, const uint8_t *e) {
    uint32_t h = 2166136261u;
    while (p < e) h = (h ^ *p++) * 16777619;
    return h;
}
__attribute__((noinline, noipa)) static int dense(int x) {
    switch (x) {
    case 0: return 5;
    case 1: return 17;
    case 2: return 3;
    case 3: return 99;
    case 4: return x * x;
    case 5: return -1;
    case 6: return 12;
    case 7: return 1 << x;
    case 8: return 77;
    case 9: return 2;
    default: return 0;
    }
}

int main(void) {
    uint32_t before = sum(blob_start, blob_end);
    long total = 0;
    for (int i = 0; i < 1000; i++) total += blob(i & 3);
    printf("blob %ld, checksum same %d, value %x\n", total, before == sum(blob_start, blob_end), before);
    printf("overlap %lx %lx %lx\n", overlap(2) & 0xffffffff, overlap(3), overlap(5));
    uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    total = 0;
    for (int off = 0; off < 2000; off += 13) {
        memcpy(p + off, copied_start, copied_end - copied_start);
        total += ((long (*)(long))(p + off))(off)-copied(off);
    }
    printf("copies differ by %ld\n", total);
    total = 0;
    for (int i = 0; i < 100000; i++) total += dense(i % 11);
    printf("switch %ld\n", total);
    uintptr_t rip;
    __asm__("lea (%%rip), %0" : "=r"(rip));
    CHECK(rip > (uintptr_t)main - 65536 && rip < (uintptr_t)main + 65536);
    return finish();
}

// cflags: -no-pie -fno-pie
/* Old and odd ways: a non-PIE program, int $0x80, the vsyscall page, registers after syscall, cpuid and xgetbv. */
#include "guest.h"
#include <cpuid.h>
#include <sys/prctl.h>

int main(void) {
    CHECK((uintptr_t)main < 0x1000000);
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20 /* getpid */) : "memory", "r8", "r9", "r10", "r11");
    CHECK(r == getpid());
    static char text[] = "written by int 0x80\n";
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "a"(4 /* write */), "b"(1), "c"(text), "d"(sizeof text - 1)
                     : "memory", "r8", "r9", "r10", "r11");
    printf("result %ld\n", r);
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(9999) : "memory", "r8", "r9", "r10", "r11");
    printf("unknown call %ld\n", r);

    uintptr_t rcx, after;
    uint64_t r11, flags;
    __asm__ volatile("stc\n pushfq\n pop %3\n syscall\n 1: lea 1b(%%rip), %1\n mov %%r11, %2"
                     : "=c"(rcx), "=r"(after), "=r"(r11), "=&r"(flags), "=a"(r)
                     : "a"(SYS_getpid)
                     : "r11", "memory", "cc");
    printf("rcx is the next pc %d, r11 the flags %d\n", rcx == after, r11 == flags);
    uint64_t keep[6] = {0};
    __asm__ volatile(
        "mov $1, %%edi\n mov $2, %%esi\n mov $3, %%edx\n mov $4, %%r10d\n mov $5, %%r8d\n mov $6, %%r9d\n syscall\n"
        "mov %%rdi, (%1)\n mov %%rsi, 8(%1)\n mov %%rdx, 16(%1)\n mov %%r10, 24(%1)\n mov %%r8, 32(%1)\n mov %%r9, "
        "40(%1)"
        : "=a"(r)
        : "b"(keep), "a"(SYS_getpid)
        : "rdi", "rsi", "rdx", "r8", "r9", "r10", "rcx", "r11", "memory");
    for (int i = 0; i < 6; i++) printf("%lu ", keep[i]);
    puts("kept");

    unsigned a, b, c, d;
    char vendor[13] = "";
    __get_cpuid(0, &a, (unsigned *)vendor, (unsigned *)(vendor + 8), (unsigned *)(vendor + 4));
    printf("cpu vendor has %zu letters\n", strlen(vendor));
    CHECK(__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE) && (d & bit_SSE2));
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    CHECK((lo & 3) == 3);
    /* time() in the vsyscall page, where the kernel still has one */
    char maps[1 << 16];
    slurp("/proc/self/maps", maps, sizeof maps);
    if (has_text(maps, "[vsyscall]")) {
        time_t t = ((time_t(*)(time_t *))0xffffffffff600400)(NULL);
        CHECK(labs(t - time(NULL)) <= 1);
    }
    uint16_t cs, ss;
    __asm__("mov %%cs, %0\n mov %%ss, %1" : "=r"(cs), "=r"(ss));
    printf("cs %x ss %x\n", cs, ss);
    return finish();
}

/* SIGBUS beyond the end of a truncated file: in data, and when executing it; repaired by growing the file.
 * cflags: -D_GNU_SOURCE */
#include <ucontext.h>

#include "guest.h"

static sigjmp_buf out;
static int fd, code, sig_seen;
static char *map;
static uintptr_t addr;
static void grow(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)uc;
    code = si->si_code, addr = (uintptr_t)si->si_addr;
    CHECK(ftruncate(fd, 16384) == 0);
}
static void leave(int sig, siginfo_t *si, void *uc) {
    (void)uc;
    sig_seen = sig, addr = (uintptr_t)si->si_addr;
    siglongjmp(out, 1);
}


static long registers[5];
static void leave_with_registers(int sig, siginfo_t *si, void *uc) {
    const greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;
    registers[0] = g[REG_RAX], registers[1] = g[REG_RCX], registers[2] = g[REG_RDX], registers[3] = g[REG_EFL] & 0x8d5;
    registers[4] = g[REG_RIP] - (greg_t)map;
    siglongjmp(out, 1);
}

/* Executes at `at`, with known registers and flags. */
static void call_at(const char *at, long flags) {
    __asm__ volatile("sub $128, %%rsp; push %1; popf; call *%0; add $128, %%rsp"
                     :
                     : "r"(at), "r"(flags), "a"(0x1111111111111111), "c"(0x2222222222222222), "d"(0x3333333333333333)
                     : "memory", "cc");
}

int main(void) {
    fd = memfd_create("bus", 0);
    CHECK(ftruncate(fd, 16384) == 0);
    map = mmap(NULL, 16384, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
    map[8192] = 5;
    CHECK(ftruncate(fd, 4096) == 0);
    handle(SIGBUS, grow, 0);
    map[8200] = 7;
    printf("code BUS_ADRERR %d, address exact %d, value %d, old value %d\n", code == BUS_ADRERR,
           addr == (uintptr_t)map + 8200, map[8200], map[8192]);

    handle(SIGBUS, leave, 0), handle(SIGSEGV, leave, 0);
    static const uint8_t fn[] = {0xb8, 0x2a, 0, 0, 0, 0xc3}; /* mov eax, 42; ret */
    memcpy(map + 12288, fn, sizeof fn);
    int (*f)(void) = (int (*)(void))(map + 12288);
    printf("runs: %d\n", f());
    CHECK(ftruncate(fd, 4096) == 0);
    if (sigsetjmp(out, 1) == 0)
        printf("still runs: %d\n", f());
    else
        printf("executing beyond the end: signal %d, address exact %d\n", sig_seen, addr == (uintptr_t)map + 12288);
    handle(SIGBUS, leave_with_registers, 0);
    for (long flags = 0x8d5 | 2; flags; flags = flags == (0x8d5 | 2) ? 0x41 | 2 : 0) {
        if (sigsetjmp(out, 1) == 0) call_at(map + 12288, flags);
        printf("registers there: %lx %lx %lx, flags %lx, at %lx\n", registers[0], registers[1], registers[2], registers[3], registers[4]);
    }
    CHECK(ftruncate(fd, 16384) == 0);
    memcpy(map + 12288, fn, sizeof fn);
    map[12289] = 43;
    printf("again: %d\n", f());
    return finish();
}

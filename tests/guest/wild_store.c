/* Wild stores over the whole address space, where the program has nothing: each must end in SIGSEGV. Left out is what
 * inproc/layout.h gives to translations and their tables: where they lie depends on the programs' paths, what is filled
 * of them can be written, and a store of seven that this seed sends there hits it in one checkout of a hundred. */
#include "guest.h"

static sigjmp_buf out;
static volatile uintptr_t addr;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)uc;
    addr = (uintptr_t)si->si_addr;
    siglongjmp(out, 1);
}

static uintptr_t lo[512], hi[512];
static int maps;
static void read_maps(void) {
    static char text[1 << 18];
    slurp("/proc/self/maps", text, sizeof text);
    for (char *p = text; p && *p && maps < 512; p = strchr(p, '\n'), p = p ? p + 1 : p)
        if (sscanf(p, "%lx-%lx", &lo[maps], &hi[maps]) == 2) maps++;
}
static bool ours(uintptr_t a) {
    for (int i = 0; i < maps; i++)
        if (a + (1 << 20) >= lo[i] && a < hi[i] + (1 << 20)) return true; /* a margin: the stack grows */
    return false;
}

int main(void) {
    read_maps();
    handle(SIGSEGV, on, 0);
    volatile int stores = 0, caught = 0, survived = 0;
    volatile uint64_t x = 88172645463325252ull;
    while (stores < 20000) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        volatile uintptr_t a = (x & 0x7fffffffffff) >> (x >> 60) % 8;
        if (a >= 0x7ffffffff000 || (a >= 0x20000000 && a < 0x4c000000) || ours(a)) continue;
        stores++;
        if (sigsetjmp(out, 1) == 0)
            *(volatile char *)a = 1, survived++;
        else
            caught += addr == a;
    }
    printf("%d stores, %d caught, %d survived\n", stores, caught, survived);
    pid_t pid = fork();
    if (!pid) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)0x123456789000 = 1;
        _exit(0);
    }
    printf("default: %s\n", wait_text(pid));
    return finish();
}

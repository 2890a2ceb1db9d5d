/* SIGSEGV handlers that repair and return: the instruction is retried; si_addr, si_code and error code are exact. */
#include "guest.h"

enum { PAGES = 2000, PG = 4096 };
static char *area;
static volatile int faults, bad;

static void repair(int sig, siginfo_t *si, void *ctx) {
    (void)sig;
    ucontext_t *uc = ctx;
    char *at = si->si_addr;
    faults++;
    if (at < area || at >= area + PAGES * PG || si->si_code != SEGV_ACCERR || !(uc->uc_mcontext.gregs[REG_ERR] & 4)) {
        bad++;
        _exit(3);
    }
    mprotect((char *)((uintptr_t)at & -PG), PG, PROT_READ | PROT_WRITE);
}

int main(void) {
    area = mmap(NULL, PAGES * PG, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGSEGV, repair, 0);
    for (int i = 0; i < PAGES; i++) area[i * PG + i] = i;
    uint64_t sum = 0;
    for (int i = 0; i < PAGES; i++) sum += (uint8_t)area[i * PG + i];
    printf("%d faults, sum %lu\n", faults, sum);

    /* one memset over protected pages: string or vector code is resumed in the middle */
    mprotect(area, 64 * PG, PROT_READ);
    faults = 0;
    memset(area + 100, 7, 60 * PG);
    CHECK(faults == 61 && area[100] == 7 && area[60 * PG + 99] == 7 && area[60 * PG + 100] != 7);
    mprotect(area, 64 * PG, PROT_READ);
    faults = 0;
    char *d = area + 10;
    size_t n = 20 * PG;
    __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(9) : "memory");
    CHECK(faults == 21 && n == 0 && d == area + 10 + 20 * PG);
    for (int i = 0; i < 20 * PG; i++)
        if (area[10 + i] != 9) {
            puts("FAIL: rep stosb");
            break;
        }

    /* an unaligned access across a page border */
    mprotect(area, 2 * PG, PROT_NONE);
    faults = 0;
    *(volatile uint64_t *)(area + PG - 3) = 0x1122334455667788;
    CHECK(*(volatile uint64_t *)(area + PG - 3) == 0x1122334455667788);
    printf("across a border: %d faults, bad %d\n", faults, bad);
    return finish();
}

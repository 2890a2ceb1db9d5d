/* SIGSEGV handlers that leave by siglongjmp; calls to null, to unmapped and to non-executable memory. */
#include "guest.h"

static sigjmp_buf out;
static volatile uintptr_t pc, addr;
static volatile int code;

static void leave(int sig, siginfo_t *si, void *ctx) {
    (void)sig;
    ucontext_t *uc = ctx;
    pc = uc->uc_mcontext.gregs[REG_RIP], addr = (uintptr_t)si->si_addr, code = si->si_code;
    siglongjmp(out, 1);
}

static int deep(int n, volatile int *p) { return n ? deep(n - 1, p) + 1 : *p; }

int main(void) {
    handle(SIGSEGV, leave, 0);
    volatile int caught = 0;
    for (volatile int i = 0; i < 2000; i++) {
        if (sigsetjmp(out, 1) == 0)
            deep(i % 50, (int *)(uintptr_t)(i * 8));
        else
            caught += addr == (uintptr_t)i * 8;
    }
    printf("caught %d\n", caught);

    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(page, 0xc3, 4096);
    uintptr_t targets[] = {0, 0x10, (uintptr_t)page + 5, 0x7ffffffff000 - 1, 0x600000000000};
    for (volatile unsigned i = 0; i < 5; i++) {
        volatile uintptr_t t = targets[i];
        if (sigsetjmp(out, 1) == 0)
            ((void (*)(void))t)();
        else
            printf("call %u: pc is the target %d, address is the target %d, code %d\n", i, pc == t, addr == t, code);
    }
    /* non-canonical: a general protection fault without an address, pc still at the call */
    volatile uint64_t odd = 0x8000000000000000;
    if (sigsetjmp(out, 1) == 0)
        *(volatile char *)odd = 1;
    else
        printf("non-canonical data: address %lx code %d\n", addr, code);

    pid_t pid = fork();
    if (!pid) {
        signal(SIGSEGV, SIG_DFL);
        ((void (*)(void))0)();
        _exit(0);
    }
    printf("null call: %s\n", wait_text(pid));
    return finish();
}

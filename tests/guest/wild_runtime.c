/* Stores where a translator has its own memory: natively nothing is there, so each is a plain SIGSEGV. */
#include "guest.h"

static sigjmp_buf out;
static void *volatile addr;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)uc;
    addr = si->si_addr;
    siglongjmp(out, 1);
}

int main(int argc, char **argv) {
    char *at = argc > 1 ? (char *)strtoul(argv[1], NULL, 16) : (char *)0x7ef080000000;
    if (argc > 2) *at = 1; /* without a handler */
    handle(SIGSEGV, on, 0);
    int caught = 0;
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(out, 1) == 0)
            *(volatile char *)(at + i * 4096) = 1;
        else
            caught += addr == at + i * 4096;
    }
    printf("%d caught\n", caught);
    return finish();
}

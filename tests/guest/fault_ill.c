/* SIGILL: undefined opcodes of several lengths, at the right pc; a decoder must not run past them. */
#include "guest.h"

static sigjmp_buf out;
static uintptr_t pc;
static int code, sig_seen;
static void on(int sig, siginfo_t *si, void *ctx) {
    sig_seen = sig, code = si->si_code, pc = ((ucontext_t *)ctx)->uc_mcontext.gregs[REG_RIP];
    siglongjmp(out, 1);
}

static const struct {
    const char *name;
    uint8_t bytes[16];
} rows[] = {
    {"ud2", {0x0f, 0x0b}},
    {"ud1", {0x0f, 0xb9, 0xc0}},
    {"ud0", {0x0f, 0xff, 0xc0}},
    {"push es", {0x06}},
    {"das", {0x2f}},
    {"aaa", {0x37}},
    {"into", {0xce}},
    {"bound", {0x62, 0x00, 0x00, 0x00, 0x00, 0x00}},
    {"0f 04", {0x0f, 0x04}},
    {"lea reg", {0x8d, 0xc0}},
    {"lock nop", {0xf0, 0x90}},
    {"lock add reg", {0xf0, 0x01, 0xc0}},
    {"too long", {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90}},
    {"bad vex", {0xc5, 0xf8, 0xff, 0xc0}},
    {"mov cr8 #gp", {0x44, 0x0f, 0x20, 0xc0}},
    {"int 5 #gp", {0xcd, 0x05}},
};

int main(void) {
    handle(SIGILL, on, 0), handle(SIGSEGV, on, 0);
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t *at = page + 64 * i;
        at[0] = 0x31, at[1] = 0xc0; /* xor eax, eax */
        memcpy(at + 2, rows[i].bytes, 16);
        memset(at + 18, 0xc3, 8);
        if (sigsetjmp(out, 1) == 0)
            ((void (*)(void))at)(), printf("%s: no fault\n", rows[i].name);
        else
            printf("%s: signal %d code %d pc exact %d\n", rows[i].name, sig_seen, code, pc == (uintptr_t)at + 2);
    }
    pid_t pid = fork();
    if (!pid) {
        signal(SIGILL, SIG_DFL);
        __builtin_trap();
    }
    printf("default: %s\n", wait_text(pid));
    return finish();
}

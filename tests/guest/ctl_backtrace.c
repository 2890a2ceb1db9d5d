// cflags: -rdynamic -fno-optimize-sibling-calls -fno-omit-frame-pointer
/* backtrace(), return addresses and frame pointers name the program's own functions; also from inside a handler. */
#include "guest.h"
#include <dlfcn.h>
#include <execinfo.h>

__attribute__((noinline)) void show(const char *what) {
    void *pc[32];
    int n = backtrace(pc, 32);
    printf("%s:", what);
    for (int i = 0; i < n; i++) {
        Dl_info d;
        if (dladdr(pc[i], &d) && d.dli_sname && strcmp(d.dli_sname, "_start")) printf(" %s", d.dli_sname);
        if (dladdr(pc[i], &d) && d.dli_sname && !strcmp(d.dli_sname, "main")) break;
    }
    puts("");
}
__attribute__((noinline)) void inner(int n) {
    if (n)
        inner(n - 1);
    else
        show("plain");
    __asm__ volatile("");
}
__attribute__((noinline)) void outer(void) {
    inner(3);
    __asm__ volatile("");
}
void on(int sig) {
    (void)sig;
    show("in a handler");
}
void crash_here(void) {
    *(volatile int *)16 = 1;
    __asm__ volatile("");
}
static sigjmp_buf out;
void on_fault(int sig, siginfo_t *si, void *ctx) {
    (void)sig, (void)si;
    Dl_info d;
    void *pc = (void *)((ucontext_t *)ctx)->uc_mcontext.gregs[REG_RIP];
    printf("fault in %s\n", dladdr(pc, &d) && d.dli_sname ? d.dli_sname : "?");
    show("at the fault");
    siglongjmp(out, 1);
}
__attribute__((noinline)) void who_called(void) {
    Dl_info d;
    void *ra = __builtin_return_address(0);
    printf("called by %s\n", dladdr(ra, &d) ? d.dli_sname : "?");
    uint8_t *p = ra;
    CHECK(p[-5] == 0xe8); /* the bytes before the return address are the call */
    void **fp = __builtin_frame_address(0);
    CHECK(fp[1] == ra);
}

int main(void) {
    outer();
    signal(SIGUSR1, on);
    raise(SIGUSR1);
    handle(SIGSEGV, on_fault, 0);
    if (!sigsetjmp(out, 1)) crash_here();
    who_called();
    char **names = backtrace_symbols((void *[]){(void *)main}, 1);
    printf("symbols: %d\n", has_text(names[0], "main"));
    return finish();
}

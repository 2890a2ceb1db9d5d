/* A handler whose stack cannot be written: SIGSEGV takes the signal's place, on a stack of its own if it has one. */
#include "guest.h"

static sigjmp_buf back;
static volatile int caught, code;
static char alternate[64 << 10];

static void on_signal(int sig, siginfo_t *info, void *context) {
    caught = sig;
    code = info->si_code;
    siglongjmp(back, 1);
}

static void raise_without_stack(int sig) {
    long nr = SYS_kill, pid = getpid();
    register uint64_t saved __asm__("r12") = 0;
    __asm__ volatile("mov %%rsp, %0; mov $0x1000, %%esp; syscall; mov %0, %%rsp"
                     : "+r"(saved), "+a"(nr)
                     : "D"(pid), "S"((long)sig)
                     : "rcx", "r11", "memory");
}

static void illegal_without_stack(void) {
    register uint64_t saved __asm__("r12") = 0;
    __asm__ volatile("mov %%rsp, %0; mov $0x1000, %%esp; ud2; mov %0, %%rsp" : "+r"(saved) : : "memory");
}

static void child(const char *name, int on_stack, int sig) {
    pid_t pid = fork();
    if (pid == 0) {
        stack_t ss = {.ss_sp = alternate, .ss_size = sizeof alternate};
        sigaltstack(&ss, NULL);
        handle(SIGUSR1, on_signal, 0);
        handle(SIGILL, on_signal, 0);
        handle(SIGSEGV, on_signal, on_stack);
        if (sigsetjmp(back, 1) == 0) {
            if (sig == SIGILL)
                illegal_without_stack();
            else
                raise_without_stack(sig);
        }
        printf("%s: signal %d, by the kernel %d\n", name, caught, code == SI_KERNEL);
        _exit(0);
    }
    printf("%s: %s\n", name, wait_text(pid));
}

int main(void) {
    child("asynchronous", SA_ONSTACK, SIGUSR1);
    child("synchronous", SA_ONSTACK, SIGILL);
    child("no stack for SIGSEGV either", 0, SIGUSR1);
    return finish();
}

/* A breakpoint in a program that has been executed and has run not one instruction of its own yet: what is known of its code from
 * earlier runs does not fit any more. */
#include "guest.h"

#include <elf.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/user.h>

__attribute__((noinline)) static int answer(int n) {
    __asm__ volatile("" : "+r"(n));
    return n + 4;
}

/* Enough code to be worth keeping. */
static int work(int n) {
    int sum = 0;
    for (int i = 0; i < 400; i++) switch (i * n % 16) {
        case 0: sum += answer(i); break;
        case 1: sum -= answer(i); break;
        case 2: sum ^= answer(i); break;
        case 3: sum |= answer(sum); break;
        case 4: sum += answer(sum) & 1; break;
        case 5: sum -= answer(i) & i; break;
        case 6: sum &= answer(i) | 64; break;
        default: sum ^= i;
        }
    return sum ? 4 : 5;
}

static pid_t start(char *self, bool traced) {
    pid_t pid = fork();
    if (pid) return pid;
    if (traced) ptrace(PTRACE_TRACEME, 0, 0, 0);
    execl("/proc/self/exe", self, "child", NULL);
    _exit(9);
}

static unsigned long entry_of(pid_t pid) {
    char path[40];
    Elf64_auxv_t a = {0};
    snprintf(path, sizeof path, "/proc/%d/auxv", pid);
    FILE *f = fopen(path, "r");
    while (f && fread(&a, sizeof a, 1, f) == 1 && a.a_type != AT_ENTRY) {}
    if (f) fclose(f);
    return a.a_type == AT_ENTRY ? a.a_un.a_val : 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return work(3) + answer(argc);
    int status;
    for (int i = 0; i < 4; i++) { /* now it is known, if anything is kept */
        pid_t pid = start(argv[0], false);
        printf("by itself: %s\n", wait_text(pid));
    }
    pid_t pid = start(argv[0], true);
    waitpid(pid, &status, 0);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    unsigned long at = (unsigned long)answer - getauxval(AT_ENTRY) + entry_of(pid);
    long code = ptrace(PTRACE_PEEKTEXT, pid, at, 0);
    CHECK(code == *(long *)answer);
    CHECK(ptrace(PTRACE_POKETEXT, pid, at, (code & ~0xffl) | 0xcc) == 0);
    ptrace(PTRACE_CONT, pid, 0, 0);
    waitpid(pid, &status, 0);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    if (WIFSTOPPED(status)) {
        CHECK(ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip), 0) == (long)at + 1);
        ptrace(PTRACE_POKETEXT, pid, at, code);
        ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rip), at);
        ptrace(PTRACE_CONT, pid, 0, 0);
    }
    printf("with a breakpoint: %s\n", wait_text(pid));
    return finish();
}

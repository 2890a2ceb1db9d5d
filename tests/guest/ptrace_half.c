/* Registers of a tracee that fit only half into the tracer's memory: what was written stays. */
#include "guest.h"

#include <linux/seccomp.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

int main(void) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(0);
    }
    int status, written = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    unsigned char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mprotect(p + 4096, 4096, PROT_NONE) == 0);
    memset(p, 0xa5, 4096);
    CHECK(ptrace(PTRACE_GETREGS, child, 0, p + 4096 - sizeof(struct user_regs_struct) + 8) == -1);
    for (int i = 0; i < 4096; i++) written += p[i] != 0xa5;
    printf("%s, %s\n", strerror(errno), written > 100 ? "written" : "nothing written");
    struct iovec odd = {p, 217};
    long ret = ptrace(PTRACE_GETREGSET, child, 1 /* NT_PRSTATUS */, &odd);
    printf("%ld %s, %zu\n", ret, strerror(errno), odd.iov_len);
    CHECK(ptrace(PTRACE_DETACH, child, 0, 0) == 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    /* the upper halves of the first arguments do not count */
    uint32_t action = SECCOMP_RET_TRAP;
    long high = 0x1234567800000000;
    printf("%ld\n", syscall(SYS_seccomp, high | SECCOMP_GET_ACTION_AVAIL, high, &action));
    return finish();
}

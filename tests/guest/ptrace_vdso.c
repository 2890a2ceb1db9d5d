// A tracer changes bytes of the vDSO of a stopped process, as for a breakpoint there, and puts them back.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void child(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    _exit(clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? 5 : 6);
}

int main(void) {
    char *vdso = (char *)getauxval(AT_SYSINFO_EHDR);
    int status;
    if (!vdso) return 77;
    pid_t pid = fork();
    if (pid == 0) child();
    waitpid(pid, NULL, 0);
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, pid, vdso + 0x800, 0);
    printf("read: %s\n", strerror(errno));
    long wrote = ptrace(PTRACE_POKETEXT, pid, vdso + 0x800, word ^ 1);
    printf("wrote: %ld, read back: %ld\n", wrote, ptrace(PTRACE_PEEKTEXT, pid, vdso + 0x800, 0) ^ word);
    printf("put back: %ld\n", ptrace(PTRACE_POKETEXT, pid, vdso + 0x800, word));
    ptrace(PTRACE_CONT, pid, 0, 0);
    waitpid(pid, &status, 0);
    printf("exited %d with %d\n", WIFEXITED(status), WEXITSTATUS(status));
    return 0;
}

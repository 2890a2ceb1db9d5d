// Programs that ask to be traced only to find out whether they already are.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void request(const char *what, int request, pid_t pid) {
    errno = 0;
    long ret = ptrace(request, pid, 0, 0);
    printf("%s: %ld %s\n", what, ret, strerror(errno));
    fflush(stdout);
}

static void ask(const char *who) { request(who, PTRACE_TRACEME, 0); }

int main(void) {
    request("ourselves", PTRACE_ATTACH, getpid());
    request("not traced", PTRACE_CONT, getpid());
    request("nobody", PTRACE_ATTACH, 0x7ffffff0);
    if (fork() == 0) {
        ask("child");
        ask("child again");
        _exit(7);
    }
    int status;
    pid_t pid = wait(&status);
    printf("%d %x\n", pid > 0, status);
    ask("parent");
    ask("parent again");
    return 0;
}

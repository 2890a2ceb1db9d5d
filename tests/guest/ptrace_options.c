/* Options that do not exist are refused, and change nothing. */
#include "guest.h"
#include <sys/ptrace.h>

int main(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(5);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    CHECK(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXIT) == 0);
    CHECK(ptrace(PTRACE_SETOPTIONS, child, 0, 1l << 30) == -1 && errno == EINVAL);
    CHECK(ptrace(PTRACE_SETOPTIONS, child, 0, 1l << 40) == -1 && errno == EINVAL);
    CHECK(ptrace(PTRACE_CONT, child, 0, 0) == 0);
    CHECK(waitpid(child, &status, 0) == child && status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8));
    CHECK(ptrace(PTRACE_CONT, child, 0, 0) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);

    child = fork();
    if (child == 0)
        for (;;) pause();
    CHECK(ptrace(PTRACE_SEIZE, child, 0, 1l << 30) == -1 && errno == EIO);
    CHECK(ptrace(PTRACE_SEIZE, child, 8, 0) == -1 && errno == EIO);
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    printf("done\n");
    return failures != 0;
}

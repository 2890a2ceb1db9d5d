/* A tracee that was killed has ended once, for whoever asks, and however it asks. */
#include "guest.h"
#include <sys/ptrace.h>

static pid_t stopped_tracee(void) {
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    return pid;
}

int main(void) {
    siginfo_t info;
    int status;
    for (int how = 0; how < 3; how++) {
        pid_t pid = stopped_tracee();
        kill(pid, SIGKILL);
        if (how == 0) {
            CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        } else {
            memset(&info, 0, sizeof info);
            CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0 && info.si_pid == pid);
            CHECK(waitid(how == 1 ? P_PID : P_ALL, (id_t)pid, how == 1 ? &info : NULL, WEXITED) == 0);
        }
        memset(&info, 0, sizeof info);
        CHECK(waitid(P_ALL, 0, &info, WEXITED | WSTOPPED) == -1 && errno == ECHILD);
        CHECK(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
        CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == -1 && errno == ESRCH);
    }
    return finish();
}

/* A vfork() child under a tracer: its parent's event comes while the child is alive, and another one when it has left. */
#include "vfork_tracee.h"

static int start[2];

static void tracee(char **argv) {
    char c;
    if (read(start[0], &c, 1) != 1) _exit(1);
    make_children(argv);
}

static void follow(pid_t pid, bool executes) {
    unsigned long child = 0, message = 0;
    siginfo_t info = {0};
    await(pid, "vfork");
    CHECK(ptrace(PTRACE_GETEVENTMSG, pid, 0, &child) == 0 && (pid_t)child > 0);
    await((pid_t)child, "child");
    long word = ptrace(PTRACE_PEEKDATA, pid, &seen, 0);
    printf("seen: %d\n", (int)word);
    ptrace(PTRACE_POKEDATA, pid, &seen, word + 1); /* what is one's is the other's */
    printf("parent waits: %d\n",
           waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOHANG) == 0 && info.si_pid == 0);
    go(pid);
    sleep_ms(10);
    go((pid_t)child);
    if (executes) {
        await((pid_t)child, "exec");
        await(pid, "vfork is done");
        go((pid_t)child);
    } else {
        await(pid, "vfork is done");
    }
    CHECK(ptrace(PTRACE_GETEVENTMSG, pid, 0, &message) == 0 && message == child);
    await((pid_t)child, "end of child");
    go(pid);
    await(pid, "SIGCHLD");
    go(pid);
}

int main(int argc, char **argv) {
    if (argc > 1) return 6;
    CHECK(pipe(start) == 0);
    pid_t pid = fork();
    if (pid == 0) tracee(argv);
    long options = PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC;
    CHECK(ptrace(PTRACE_SEIZE, pid, 0, options) == 0);
    CHECK(write(start[1], "", 1) == 1);
    follow(pid, false);
    follow(pid, true);
    await(pid, "end");
    return finish();
}

/* A tracer that follows vfork() lets the child go first, until it has left its parent's memory: ended, or executed a program. Only then
 * the parent, which is stopped for its event all the while, is looked at and goes on. */
#include "vfork_tracee.h"

static void follow(pid_t pid, bool executes) {
    unsigned long child = 0;
    await(pid, "vfork");
    CHECK(ptrace(PTRACE_GETEVENTMSG, pid, 0, &child) == 0 && (pid_t)child > 0);
    await((pid_t)child, "child");
    go((pid_t)child);
    if (executes) {
        await((pid_t)child, "exec");
        go((pid_t)child);
    }
    await((pid_t)child, "end of child");
    printf("seen: %d\n", (int)ptrace(PTRACE_PEEKDATA, pid, &seen, 0));
    go(pid);
    int status = await(pid, "SIGCHLD");
    while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGCHLD) status = (go(pid), await(pid, "SIGCHLD"));
    go(pid);
}

int main(int argc, char **argv) {
    if (argc > 1) return 6;
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
        raise(SIGSTOP);
        make_children(argv);
    }
    await(pid, "begin");
    CHECK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC) == 0);
    go(pid);
    follow(pid, false);
    follow(pid, true);
    await(pid, "end");
    return finish();
}

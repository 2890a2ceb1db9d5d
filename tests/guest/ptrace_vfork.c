/* A vfork() child under a tracer: its parent's event comes while the child is alive, and another one when it has left. */
#include <signal.h>
#include <sys/ptrace.h>

#include "guest.h"

static int start[2];
static volatile int seen;

static void tracee(char **argv) {
    char c;
    if (read(start[0], &c, 1) != 1) _exit(1);
    pid_t child = vfork();
    if (child == 0) {
        seen++;
        _exit(9);
    }
    int first = 0, second = 0;
    waitpid(child, &first, 0);
    child = vfork();
    if (child == 0) {
        seen++;
        execl(argv[0], argv[0], "again", NULL);
        _exit(2);
    }
    waitpid(child, &second, 0);
    _exit(10 * seen + (WEXITSTATUS(first) == 9 && WEXITSTATUS(second) == 6));
}

static int await(pid_t pid, const char *what) {
    int status = 0;
    CHECK(waitpid(pid, &status, __WALL) == pid);
    if (WIFSTOPPED(status))
        printf("%s: signal %d, event %d\n", what, WSTOPSIG(status), status >> 16);
    else
        printf("%s: %s\n", what, status_text(status));
    return status;
}

/* With its signals handed on, until the next event. */
static void go(pid_t pid) { CHECK(ptrace(PTRACE_CONT, pid, 0, 0L) == 0); }

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

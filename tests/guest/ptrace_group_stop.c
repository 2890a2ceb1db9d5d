/* Stops of a whole process as its tracer sees them: told of twice, listened to, interrupted, continued from elsewhere. */
#include <signal.h>
#include <sys/ptrace.h>

#include "guest.h"

static int commands[2];

static void obey(void) {
    char c;
    while (read(commands[0], &c, 1) == 1 && c != 'q') {
        if (c == 'a')
            setsid();
        else
            raise(c == 't' ? SIGTSTP : SIGSTOP);
    }
    _exit(7);
}

static pid_t make_child(bool leads_session) {
    CHECK(pipe(commands) == 0);
    pid_t child = fork();
    if (!leads_session) setpgid(child, child); /* its group has us to continue it: otherwise SIGTSTP does nothing */
    if (child == 0) obey();
    return child;
}

static void tell(char c) { CHECK(write(commands[1], &c, 1) == 1); }

static void await(pid_t child, const char *what) {
    int status = 0;
    siginfo_t info = {0};
    CHECK(waitpid(child, &status, 0) == child);
    printf("%s: ", what);
    if (!WIFSTOPPED(status)) {
        printf("ended with %d\n", WEXITSTATUS(status));
        return;
    }
    printf("signal %d, event %d", WSTOPSIG(status), status >> 16);
    if (ptrace(PTRACE_GETSIGINFO, child, 0, &info) == 0)
        printf(", si_signo %d, si_code %d%s\n", info.si_signo, info.si_code, info.si_pid == child ? ", its own" : "");
    else
        printf(", no siginfo: %s\n", strerror(errno));
}

static void go(pid_t child, long request, int signal) {
    long ret = ptrace(request, child, 0, (long)signal);
    if (ret) printf("request %lx: %s\n", request, strerror(errno));
}

static void seized(void) {
    pid_t child = make_child(false);
    CHECK(ptrace(PTRACE_SEIZE, child, 0, 0L) == 0);
    tell('s');
    await(child, "SIGSTOP is due");
    go(child, PTRACE_LISTEN, 0); /* not yet */
    go(child, PTRACE_CONT, SIGSTOP);
    await(child, "stopped");
    go(child, PTRACE_LISTEN, 0);
    sleep_ms(20);
    printf("news while it is stopped: %d\n", waitpid(child, NULL, WNOHANG));
    kill(child, SIGCONT);
    await(child, "continued");
    go(child, PTRACE_CONT, 0);
    await(child, "SIGCONT is due");
    go(child, PTRACE_CONT, SIGCONT);
    tell('t');
    await(child, "SIGTSTP is due");
    go(child, PTRACE_CONT, SIGTSTP);
    await(child, "stopped");
    go(child, PTRACE_LISTEN, 0);
    sleep_ms(20);
    go(child, PTRACE_INTERRUPT, 0);
    await(child, "interrupted");
    go(child, PTRACE_CONT, 0);
    tell('s');
    await(child, "SIGSTOP is due");
    go(child, PTRACE_CONT, SIGUSR1); /* ends it */
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    printf("killed by %d\n", WTERMSIG(status));
}

static void attached(void) {
    pid_t child = make_child(false);
    CHECK(ptrace(PTRACE_ATTACH, child, 0, 0L) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WSTOPSIG(status) == SIGSTOP);
    go(child, PTRACE_CONT, 0);
    tell('t');
    await(child, "SIGTSTP is due");
    go(child, PTRACE_CONT, SIGTSTP);
    await(child, "stopped");
    go(child, PTRACE_LISTEN, 0);
    go(child, PTRACE_CONT, 0);
    tell('q');
    await(child, "end");
}

/* Nobody could continue it: only SIGSTOP stops it. */
static void alone(void) {
    pid_t child = make_child(true);
    CHECK(ptrace(PTRACE_SEIZE, child, 0, 0L) == 0);
    CHECK(ptrace(PTRACE_INTERRUPT, child, 0, 0L) == 0);
    await(child, "interrupted");
    go(child, PTRACE_CONT, 0);
    tell('a');
    tell('t');
    await(child, "SIGTSTP is due");
    go(child, PTRACE_CONT, SIGTSTP);
    tell('q');
    await(child, "end");
}

/* Stopped before anybody traces it, and still stopped when nobody does any more. */
static void found_stopped(void) {
    pid_t child = make_child(false);
    int status;
    tell('s');
    CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    CHECK(ptrace(PTRACE_SEIZE, child, 0, 0L) == 0);
    await(child, "found");
    CHECK(ptrace(PTRACE_DETACH, child, 0, 0L) == 0);
    tell('q');
    sleep_ms(20);
    printf("news while it is stopped: %d\n", waitpid(child, NULL, WNOHANG));
    kill(child, SIGCONT);
    CHECK(waitpid(child, &status, 0) == child);
    printf("ended with %d\n", WEXITSTATUS(status));
}

/* As strace begins: what it has seized is continued before it has heard of the stop, or has answered. */
static void continued_early(void) {
    for (int i = 0; i < 20; i++) {
        pid_t child = make_child(false);
        int status;
        tell('s');
        CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        CHECK(ptrace(PTRACE_SEIZE, child, 0, 0L) == 0);
        kill(child, SIGCONT);
        bool ended = false;
        for (int stops = 0; !ended && stops < 10; stops++) {
            CHECK(waitpid(child, &status, 0) == child);
            ended = !WIFSTOPPED(status);
            if (ended) break;
            int signo = WSTOPSIG(status);
            bool group_stop = status >> 16 == PTRACE_EVENT_STOP && signo != SIGTRAP;
            if (stops == 0) tell('q');
            go(child, group_stop ? PTRACE_LISTEN : PTRACE_CONT, status >> 16 ? 0 : signo);
        }
        CHECK(ended && WEXITSTATUS(status) == 7);
        close(commands[0]);
        close(commands[1]);
    }
    printf("continued early\n");
}

int main(void) {
    seized();
    attached();
    alone();
    found_stopped();
    continued_early();
    return finish();
}

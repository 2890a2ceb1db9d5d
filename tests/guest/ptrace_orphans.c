/* What becomes of tracees when their tracer ends: they go on, with a signal that it has not heard of, or die with it. */
#include "guest.h"
#include <sys/prctl.h>
#include <sys/ptrace.h>

enum phase { RUNNING, HEARD, UNHEARD }; /* of the tracee: stopped for SIGUSR1, which the tracer has been told, or not */

static int told[2]; /* the tracee has got so far */
static volatile bool over;

static void on_signal(int signo) {
    char c = signo == SIGUSR1 ? '1' : '2';
    over = signo == SIGUSR2;
    CHECK(write(told[1], &c, 1) == 1);
}

static void tracee(void) {
    sigset_t set, old;
    sigemptyset(&set), sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, &old);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    signal(SIGUSR1, on_signal), signal(SIGUSR2, on_signal);
    CHECK(write(told[1], "r", 1) == 1);
    while (!over) sigsuspend(&old);
    _exit(3);
}

static char hear(void) {
    char c = 0;
    CHECK(read(told[0], &c, 1) == 1);
    return c;
}

static int tracer(pid_t pid, unsigned long options, enum phase phase, bool killed) {
    siginfo_t info;
    CHECK(ptrace(PTRACE_SEIZE, pid, 0, options) == 0);
    if (phase != RUNNING) {
        kill(pid, SIGUSR1);
        CHECK(waitid(P_PID, (id_t)pid, &info, WSTOPPED | (phase == UNHEARD ? WNOWAIT : 0)) == 0);
        CHECK(info.si_status == SIGUSR1);
    }
    if (killed) raise(SIGKILL);
    return failures;
}

static void try(const char *name, unsigned long options, enum phase phase, bool killed) {
    CHECK(pipe(told) == 0);
    pid_t pid = fork(), by;
    if (!pid) tracee();
    CHECK(hear() == 'r');
    if (!(by = fork())) _exit(tracer(pid, options, phase, killed));
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)by, &info, WEXITED | WNOWAIT) == 0); /* it is not yet out of the way */
    printf("%s:", name);
    if (!(options & PTRACE_O_EXITKILL)) {
        if (phase == RUNNING) kill(pid, SIGUSR1);
        if (phase != HEARD) printf(" %c", hear());
        kill(pid, SIGUSR2);
        printf(" %c", hear());
    }
    printf(", %s", wait_text(pid));
    printf(", the tracer %s\n", wait_text(by));
    close(told[0]), close(told[1]);
}

int main(void) {
    try("running", 0, RUNNING, false);
    try("heard", 0, HEARD, false);
    try("unheard", 0, UNHEARD, false);
    try("running, tracer killed", 0, RUNNING, true);
    try("heard, tracer killed", 0, HEARD, true);
    try("unheard, tracer killed", 0, UNHEARD, true);
    try("to be killed, running", PTRACE_O_EXITKILL, RUNNING, false);
    try("to be killed, heard", PTRACE_O_EXITKILL, HEARD, false);
    try("to be killed, heard, tracer killed", PTRACE_O_EXITKILL, HEARD, true);
    return finish();
}

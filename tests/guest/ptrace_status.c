/* What /proc says of a tracee: who traces it, and that it is stopped, to its tracer and to itself (ltrace waits for that). */
#include <signal.h>
#include <sys/ptrace.h>

#include "guest.h"

static int tracer_in(const char *path) {
    static char text[8192];
    slurp(path, text, sizeof text);
    char *at = strstr(text, "TracerPid:");
    return at ? atoi(at + 10) : -1;
}

static char state_in(const char *path) {
    static char text[8192];
    slurp(path, text, sizeof text);
    char *at = strstr(text, "State:");
    return at ? at[7] : '?';
}

static char letter_in(const char *path) {
    static char text[8192];
    slurp(path, text, sizeof text);
    char *at = strrchr(text, ')');
    return at ? at[2] : '?';
}

static void trace(void) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    printf("the tracee sees its tracer: %d\n", tracer_in("/proc/self/status") == getppid());
    fflush(stdout);
    _exit(7);
}

int main(void) {
    printf("nobody traces us: %d\n", tracer_in("/proc/self/status") == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) trace();
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", child);
    printf("stopped: %c, traced by us: %d\n", state_in(path), tracer_in(path) == getpid());
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", child, child);
    printf("stat of its thread: %c\n", letter_in(path));
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    printf("stat: %c\n", letter_in(path));
    ptrace(PTRACE_CONT, child, 0, 0);
    printf("%s\n", wait_text(child));
    return finish();
}

/* A process that is about to execute a program is seized: it notices there, and does not keep its tracer waiting. */
#include "guest.h"
#include "lateness.h"
#include <sys/ptrace.h>

int main(void) {
    int status, late = 0;
    for (int i = 0; i < 24; i++) {
        pid_t child = fork();
        if (child == 0) {
            execlp("sleep", "sleep", "100", (char *)0);
            _exit(1);
        }
        usleep((unsigned)i * 400);
        struct span s = begin(child);
        CHECK(ptrace(PTRACE_SEIZE, child, 0, 0) == 0);
        late += is_late(&s);
        CHECK(ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0);
        CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    }
    printf("late %d\n", late);
    return finish();
}

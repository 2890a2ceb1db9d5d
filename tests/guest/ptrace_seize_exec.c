/* A process that is about to execute a program is seized: it notices there, and does not keep its tracer waiting. */
#include "guest.h"
#include <sys/ptrace.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds for which it could have run, and others did: the time that a busy machine takes is not the tracer's. */
static double kept_waiting(pid_t pid) {
    char path[40];
    unsigned long long ran, waited = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%llu %llu", &ran, &waited) != 2) waited = 0;
    if (f) fclose(f);
    return (double)waited * 1e-9;
}

int main(void) {
    int status, late = 0;
    for (int i = 0; i < 24; i++) {
        pid_t child = fork();
        if (child == 0) {
            execlp("sleep", "sleep", "100", (char *)0);
            _exit(1);
        }
        usleep((unsigned)i * 400);
        double began = now(), waited = kept_waiting(child) + kept_waiting(getpid());
        CHECK(ptrace(PTRACE_SEIZE, child, 0, 0) == 0);
        double took = now() - began;
        late += took > 1.9 && took - (kept_waiting(child) + kept_waiting(getpid()) - waited) > 1;
        CHECK(ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0);
        CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    }
    printf("late %d\n", late);
    return finish();
}

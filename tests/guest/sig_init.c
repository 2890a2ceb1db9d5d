/* The first process of a pid namespace: default actions that would kill it are ignored, its own faults are not. */
#include "guest.h"

#include <sched.h>

static void in_namespace(const char *name, void (*body)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID) != 0) _exit(77);
        pid_t init = fork();
        if (init == 0) {
            if (getpid() != 1) _exit(78);
            body();
            _exit(55);
        }
        int status = 0;
        waitpid(init, &status, 0);
        printf("%s: %s\n", name, status_text(status));
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) exit(77);
}

static void quits(void) { kill(getpid(), SIGQUIT), raise(SIGTERM), raise(SIGSEGV); }
static void kills(void) { kill(getpid(), SIGKILL); }
static void faults(void) { *(volatile int *)8 = 1; }
static void traps(void) { __asm__ volatile("ud2"); }
static void divides(void) {
    volatile int zero = 0;
    zero = 1 / zero;
}
static void child_dies(void) {
    pid_t pid = fork();
    if (pid == 0) raise(SIGTERM), _exit(1);
    if (strcmp(wait_text(pid), "signal 15")) _exit(56);
}

int main(void) {
    in_namespace("signals from itself", quits);
    in_namespace("SIGKILL from itself", kills);
    in_namespace("a fault", faults);
    in_namespace("an illegal instruction", traps);
    in_namespace("a division", divides);
    in_namespace("its child", child_dies);
    return finish();
}

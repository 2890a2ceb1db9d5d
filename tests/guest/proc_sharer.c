/* Processes that share memory without being threads, and leave it: by execve, by killing themselves, by being killed. */
#include "guest.h"

#include <linux/futex.h>
#include <sched.h>

static int word = 1;
static volatile int ready;
static char stack[256 << 10] __attribute__((aligned(16)));

static int executes(void *arg) {
    char *argv[] = {arg, "again", NULL};
    execv("/proc/self/exe", argv);
    return 99;
}

static int execute_fails(void *arg) {
    char *argv[] = {arg, NULL};
    execv("/no/such/program", argv);
    ready = errno == ENOENT;
    return 7;
}

static int kills_itself(void *arg) {
    kill(getpid(), SIGKILL);
    return 99;
}

static int dies_of_signal(void *arg) {
    raise(SIGTERM);
    return 99;
}

static void one(const char *name, int (*body)(void *), void *arg) {
    int status = 0;
    word = 1;
    pid_t pid = clone(body, stack + sizeof stack, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, arg, NULL, NULL, &word);
    CHECK(pid > 0);
    /* cleared, and we are woken, when the memory is left */
    while (__atomic_load_n(&word, __ATOMIC_SEQ_CST)) syscall(SYS_futex, &word, FUTEX_WAIT, 1, NULL, NULL, 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("%s: %s\n", name, status_text(status));
}

int main(int argc, char **argv) {
    if (argc > 1) {
        printf("executed\n");
        return 5;
    }
    one("execve", executes, argv[0]);
    one("execve fails", execute_fails, argv[0]);
    CHECK(ready == 1);
    one("SIGKILL", kills_itself, NULL);
    one("SIGTERM", dies_of_signal, NULL);
    one("execve again", executes, argv[0]);
    return finish();
}

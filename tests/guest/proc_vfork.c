/* vfork: shared memory until exec or exit, the parent waits; the child's sigaction must not reach the parent. */
#include "guest.h"

static volatile int shared;
static void never(int sig) { printf("FAIL: the child's handler ran for %d\n", sig); }
static void mine(int sig) { printf("parent's handler for %d\n", sig); }

int main(void) {
    for (int i = 0; i < 50; i++) {
        pid_t pid = vfork();
        if (!pid) {
            shared = i + 1;
            _exit(3);
        }
        CHECK(shared == i + 1);
        CHECK(strcmp("exit 3", wait_text(pid)) == 0);
    }
    printf("shared %d\n", shared);
    char *const argv[] = {"sh", "-c", "echo from the shell; exit 4", NULL};
    pid_t pid = vfork();
    if (!pid) {
        execv("/bin/sh", argv);
        _exit(127);
    }
    puts(wait_text(pid));

    pid = vfork();
    if (!pid) {
        execv("/nonexistent", argv);
        shared = errno;
        _exit(9);
    }
    printf("%s, ", wait_text(pid)), printf("error seen by the parent: %d\n", shared == ENOENT);

    signal(SIGUSR1, mine);
    pid = vfork();
    if (!pid) {
        signal(SIGUSR1, SIG_IGN), signal(SIGUSR2, never);
        sigset_t s;
        sigfillset(&s), sigprocmask(SIG_SETMASK, &s, NULL);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    raise(SIGUSR1);
    struct sigaction sa;
    sigaction(SIGUSR2, NULL, &sa);
    CHECK(sa.sa_handler == SIG_DFL);

    pid = vfork();
    if (!pid) {
        kill(getpid(), SIGKILL);
        _exit(0);
    }
    puts(wait_text(pid));
    return finish();
}

/* Where there is no /proc, a process that shares memory with its parent is not taken for dead as long as it lives. */
#include "guest.h"
#include <sched.h>

static char stack[1 << 16] __attribute__((aligned(16)));
static volatile int stage;
static int word;

static int child(void *arg) {
    while (stage == 0) usleep(1000);
    for (volatile int i = 0; i < 30000000; i++) {} /* the parent waits for its turn meanwhile, and looks who has it */
    stage = 2;
    return arg != NULL;
}

int main(void) {
    CHECK(mkdir("empty", 0700) == 0);
    if (geteuid() == 0) CHECK(chroot("empty") == 0 && chdir("/") == 0);
    word = 1;
    int status = 0, flags = CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD;
    int pid = clone(child, stack + sizeof stack, flags, NULL, NULL, NULL, &word);
    CHECK(pid > 0);
    CHECK(waitpid(pid, &status, WNOHANG) == 0 && word == 1);
    stage = 1;
    while (stage != 2) {}
    CHECK(waitpid(pid, &status, 0) == pid && status == 0 && word == 0);
    printf("stage %d\n", stage);
    return finish();
}

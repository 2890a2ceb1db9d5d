/* Processes that share memory with their parent are killed by another one, while their parent computes and they want to, too: what they
 * were about to tell it does not come, and it does not wait for that. */
#include "guest.h"
#include <sched.h>

static char stack[1 << 16] __attribute__((aligned(16)));
static volatile long rounds;

static int child(void *arg) {
    for (;;) rounds++;
    return arg != NULL;
}

int main(void) {
    for (int i = 0; i < 120; i++) {
        int status = 0;
        rounds = 0;
        int pid = clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
        CHECK(pid > 0);
        while (rounds < 100) sched_yield();
        int killer = fork();
        if (killer == 0) {
            usleep((useconds_t)(1000 + i * 37 % 1000));
            kill(pid, SIGKILL);
            _exit(0);
        }
        for (volatile int k = 0; k < 2000000; k++) {}
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK(waitpid(killer, &status, 0) == killer && status == 0);
    }
    return finish();
}

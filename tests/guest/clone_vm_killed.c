/* Processes that share memory with their parent are killed while they make system calls or compute: nobody waits for them. */
#include "guest.h"
#include <sched.h>
#include <sys/wait.h>

static char stack[1 << 16] __attribute__((aligned(16)));
static volatile long rounds;

static int child(void *arg) {
    for (;;) {
        close(dup(1));
        for (int i = 0; i < 100; i++) rounds++;
    }
    return arg != NULL;
}

int main(void) {
    for (int i = 0; i < 60; i++) {
        rounds = 0;
        int pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_FILES | SIGCHLD, NULL), status = 0;
        CHECK(pid > 0);
        while (rounds < 500 + 50 * (i % 7)) sched_yield(); /* its code is known to the translator by then */
        for (volatile int k = 0; k < 20000 * (i % 5); k++) {}
        CHECK(kill(pid, SIGKILL) == 0);
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    return finish();
}

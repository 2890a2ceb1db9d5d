/* A process that shares its parent's memory outlives it, however that ended, and goes on with its calls while other processes begin:
 * what it does is nobody else's. */
#include "guest.h"
#include <sched.h>
#include <sys/wait.h>

static char stack[1 << 16] __attribute__((aligned(16)));
static volatile bool runs;

static int survivor(void *arg) {
    (void)arg;
    runs = true;
    for (int i = 0; i < 150; i++) {
        close(dup(0));
        sleep_ms(1);
    }
    _exit(0);
}

static void begin(bool is_killed) {
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(clone(survivor, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL) > 0);
        while (!runs) sched_yield();
        if (!is_killed) _exit(3);
        for (;;) pause();
    }
    if (is_killed) sleep_ms(30), kill(pid, SIGKILL);
    puts(wait_text(pid));
}

int main(void) {
    for (int i = 0; i < 4; i++) {
        begin(i % 2);
        sleep_ms(i % 2 ? 120 : 5); /* until whoever was there is known to be gone */
        for (int k = 0; k < 12; k++) {
            pid_t pid = fork();
            if (pid == 0) {
                for (int n = 0; n < 100; n++) close(dup(0));
                _exit(0);
            }
            waitpid(pid, NULL, 0);
        }
    }
    return finish();
}

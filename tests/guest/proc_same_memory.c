/* Processes in the memory of another, which are no threads of it: each ends by itself, in every way there is, and its id
 * word is cleared. And a fork that goes on on a stack of its own. */
#include "guest.h"
#include <linux/futex.h>
#include <sched.h>

enum { STACK = 65536 };
static volatile int touched, word;
static char stack[STACK] __attribute__((aligned(16)));

static int by_return(void *arg) { return touched++, (int)(long)arg; }
static int by_exit(void *arg) { return touched++, syscall(SYS_exit, arg); }
static int by_exit_group(void *arg) { return touched++, syscall(SYS_exit_group, arg); }
static int by_signal(void *arg) { return touched++, syscall(SYS_kill, getpid(), arg); }
static int on_own_stack(void *arg) {
    char here;
    return &here >= stack && &here < stack + STACK ? (int)(long)arg : 1;
}

static void child(const char *name, int (*f)(void *), long arg, int flags) {
    word = 77;
    pid_t pid =
        clone(f, stack + STACK, flags | CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, (void *)arg, NULL, NULL, &word);
    struct timespec t = {0, 5000000};
    while (word) syscall(SYS_futex, &word, FUTEX_WAIT, 77, &t, 0, 0);
    printf("%s: %s, ", name, wait_text(pid)), printf("touched %d\n", touched);
}

int main(void) {
    for (int i = 0; i < 2; i++) {
        int flags = i ? CLONE_SIGHAND | CLONE_FILES : 0;
        child("return", by_return, 3, flags);
        child("exit", by_exit, 4, flags);
        child("exit_group", by_exit_group, 5, flags);
        child("signal", by_signal, SIGTERM, flags);
    }
    pid_t pid = clone(on_own_stack, stack + STACK, SIGCHLD, (void *)9);
    printf("fork on another stack: %s\n", wait_text(pid));
    return finish();
}

/* CLONE_VFORK beyond vfork(): with memory of its own, where the child needs a page that its waiting parent has, and another
 * thread of that; with the parent's handlers, where the child is no thread of the parent although it has its table. And
 * fork() by a process that has another's memory. */
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

enum { STACK = 65536, ROUNDS = 5 };
static char stack[STACK] __attribute__((aligned(16)));
static volatile int *shared;
static volatile int own;
static char *self[] = {"proc_vfork_own", "child", NULL};

static int fills_and_execs(void *arg) {
    own++;
    shared[0]++;
    while (shared[1] < shared[0]) sched_yield(); /* the thread */
    execv("/proc/self/exe", self);
    return 1;
}

static int fills_and_exits(void *arg) {
    shared[0]++;
    pid_t pid = fork(); /* lives longer than its parent: nobody waits for it */
    if (!pid) {
        while (!shared[2]) sched_yield();
        _exit(0);
    }
    return 7;
}

static int execs(void *arg) { return own++, execv("/proc/self/exe", self); }

static int forks(void *arg) {
    pid_t pid = fork();
    if (!pid) _exit(12);
    int st;
    return waitpid(pid, &st, 0) == pid && WIFEXITED(st) ? WEXITSTATUS(st) : 1;
}

static void *answers(void *arg) {
    while (shared[1] < ROUNDS) {
        shared[1] = shared[0];
        sched_yield();
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) return 21;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, answers, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        pid_t pid = clone(fills_and_execs, stack + STACK, CLONE_VFORK | SIGCHLD, NULL);
        CHECK(pid > 0 && shared[0] == i && own == 0);
        printf("own memory: %s\n", wait_text(pid));
    }
    pthread_join(thread, NULL);
    pid_t pid = clone(fills_and_exits, stack + STACK, CLONE_VFORK | SIGCHLD, NULL);
    CHECK(pid > 0 && shared[0] == ROUNDS + 1);
    shared[2] = 1;
    printf("ends without exec: %s\n", wait_text(pid));
    for (int i = 1; i <= ROUNDS; i++) {
        pid = clone(execs, stack + STACK, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_VFORK | SIGCHLD,
                    NULL);
        CHECK(pid > 0 && own == i);
        printf("shared handlers: %s\n", wait_text(pid));
    }
    pid = clone(forks, stack + STACK, CLONE_VM | CLONE_SIGHAND | SIGCHLD, NULL);
    printf("fork in shared memory: %s\n", wait_text(pid));
    pid = clone(forks, stack + STACK, CLONE_VM | SIGCHLD, NULL);
    printf("the same, own handlers: %s\n", wait_text(pid));
    return finish();
}

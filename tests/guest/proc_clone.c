/* clone and clone3 by raw system calls: shared and private parts, child tid words, tls, exit signals, pidfd, errors. */
#include "guest.h"
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>

static volatile int touched, ctid = 77;
static int child_of_clone(void *arg) {
    touched = (int)(long)arg;
    return 21;
}

static pid_t raw_clone3(struct clone_args *a) { return syscall(SYS_clone3, a, sizeof *a); }

int main(void) {
    enum { STACK = 65536 };
    char *stack = malloc(STACK);
    /* own memory */
    pid_t pid = clone(child_of_clone, stack + STACK, SIGCHLD, (void *)5);
    printf("private: %s, ", wait_text(pid)), printf("touched %d\n", touched);
    /* shared memory, descriptors and handlers */
    pid = clone(child_of_clone, stack + STACK, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD, (void *)6);
    printf("shared: %s, ", wait_text(pid)), printf("touched %d\n", touched);
    /* no exit signal: needs __WALL or __WCLONE */
    pid = clone(child_of_clone, stack + STACK, CLONE_VM, (void *)7);
    int st;
    CHECK(waitpid(pid, &st, __WALL) == pid && WEXITSTATUS(st) == 21 && touched == 7);
    /* the kernel stores the id, then clears it and wakes us */
    pid_t ptid = 0;
    pid = clone(child_of_clone, stack + STACK,
                CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, (void *)8, &ptid,
                NULL, &ctid);
    while (ctid) {
        struct timespec t = {0, 10000000};
        int now = ctid;
        if (now) syscall(SYS_futex, &ctid, FUTEX_WAIT, now, &t, 0, 0);
    }
    CHECK(ptid == pid && touched == 8);
    waitpid(pid, NULL, 0);
    puts("cleared");

    pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* fork by hand */
    if (!pid) _exit(getppid() > 0 ? 31 : 0);
    puts(wait_text(pid));

    int pidfd = -1;
    struct clone_args a = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    pid = raw_clone3(&a);
    if (!pid) _exit(32);
    struct pollfd p = {pidfd, POLLIN, 0};
    CHECK(pidfd >= 0 && poll(&p, 1, 10000) == 1);
    siginfo_t si;
    CHECK(waitid(P_PIDFD, pidfd, &si, WEXITED) == 0);
    printf("clone3 with pidfd: status %d\n", si.si_status);

    struct clone_args v = {
        .flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD, .stack = (uintptr_t)stack, .stack_size = STACK};
    register long r8 __asm__("r8") = (long)&touched;
    long r;
    __asm__ volatile("syscall\n test %%rax, %%rax\n jnz 1f\n"
                     "movl $99, (%%r8)\n mov $60, %%eax\n mov $33, %%edi\n syscall\n ud2\n 1:"
                     : "=a"(r)
                     : "a"(SYS_clone3), "D"(&v), "S"(sizeof v), "r"(r8)
                     : "rcx", "r11", "memory");
    printf("clone3 as vfork: %s, ", wait_text(r)), printf("touched %d\n", touched);

    struct clone_args bad = {.flags = CLONE_THREAD, .exit_signal = 0};
    CHECK(raw_clone3(&bad) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_clone3, &a, 8) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0) == -1 && errno == EINVAL);
    free(stack);
    return finish();
}

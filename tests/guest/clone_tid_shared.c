/* clone() writes the number of the child to memory that another process has used last. */
#include "guest.h"
#include <linux/sched.h>

static volatile struct { /* shared */
    int used, tid;
} * common;

/* Another process has the page. */
static void use_elsewhere(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        common->used++;
        common->tid = -1;
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void clone_with_word(void) {
    int status;
    use_elsewhere();
    long pid = syscall(SYS_clone, CLONE_PARENT_SETTID | SIGCHLD, NULL, &common->tid, NULL, 0);
    if (pid == 0) syscall(SYS_exit_group, 3);
    CHECK(pid > 0 && common->tid == pid);
    CHECK(waitpid((pid_t)pid, &status, 0) == pid && status == 3 << 8);
}

static void clone3_with_word(void) {
    int status;
    struct clone_args args = {.flags = CLONE_PARENT_SETTID, .exit_signal = SIGCHLD};
    args.parent_tid = (uint64_t)&common->tid;
    use_elsewhere();
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) syscall(SYS_exit_group, 4);
    CHECK(pid > 0 && common->tid == pid);
    CHECK(waitpid((pid_t)pid, &status, 0) == pid && status == 4 << 8);
}

int main(void) {
    common = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3; i++) {
        clone_with_word();
        clone3_with_word();
    }
    printf("used %d\n", common->used);
    return finish();
}

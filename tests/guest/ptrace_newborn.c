/* A process is seized as soon as its number is known, which is before it, or its parent, can have done anything. */
#include "guest.h"
#include <linux/sched.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#define ROUNDS 40

static struct { /* shared */
    int round, tid;
} * common;

static _Noreturn void parent(void) {
    for (int i = 1; i <= ROUNDS; i++) {
        while (__atomic_load_n(&common->round, __ATOMIC_SEQ_CST) != i) usleep(100);
        long child = syscall(SYS_clone, CLONE_PARENT_SETTID | SIGCHLD, NULL, &common->tid, NULL, 0);
        if (child == 0)
            for (;;) pause();
        while (waitpid((pid_t)child, NULL, 0) == -1 && errno == EINTR) continue;
    }
    _exit(0);
}

/* Whether it is where /proc says that there is code of it. */
static bool is_in_program(pid_t pid, unsigned long long pc) {
    char path[40], line[512], prot[8];
    unsigned long long start, end;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%llx-%llx %7s", &start, &end, prot) == 3 && start <= pc && pc < end && prot[2] == 'x')
            found = true;
    if (f) fclose(f);
    return found;
}

int main(void) {
    int status, strange = 0, failed = 0;
    struct user_regs_struct regs = {0};
    common = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork(), tid;
    if (pid == 0) parent();
    for (int i = 1; i <= ROUNDS; i++) {
        __atomic_store_n(&common->tid, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&common->round, i, __ATOMIC_SEQ_CST);
        while (!(tid = __atomic_load_n(&common->tid, __ATOMIC_SEQ_CST))) continue;
        failed += ptrace(PTRACE_SEIZE, tid, 0, 0) != 0;
        failed += ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0;
        failed += waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status);
        failed += ptrace(PTRACE_GETREGS, tid, 0, &regs) != 0;
        strange += !is_in_program(tid, regs.rip);
        kill(tid, SIGKILL);
        waitpid(tid, &status, __WALL);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    printf("failed %d, strange %d\n", failed, strange);
    return finish();
}

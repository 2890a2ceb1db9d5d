/* SECCOMP_RET_KILL_THREAD for the last thread of a process kills the process with SIGSYS, whatever else runs on its behalf. */
#include "guest.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static void forbid(int nr) {
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {.len = sizeof f / sizeof *f, .filter = f};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) == 0);
}

static void *ends(void *arg) { return arg; }

static void *forbidden(void *arg) {
    forbid(SYS_getsid);
    getsid(0);
    return arg;
}

int main(void) {
    volatile int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (pid == 0) {
        forbid(SYS_getsid);
        *shared = 77;
        getsid(0);
        _exit(1);
    }
    const char *how = wait_text(pid); /* before `shared` is looked at */
    printf("single-threaded: %s, left %d\n", how, *shared);
    pid = fork();
    if (pid == 0) {
        pthread_t t;
        pthread_create(&t, NULL, ends, NULL);
        pthread_join(t, NULL);
        sleep_ms(50); /* the kernel, too, knows that it has ended */
        forbid(SYS_getsid);
        getsid(0);
        _exit(1);
    }
    printf("the others have ended: %s\n", wait_text(pid));
    pid = fork();
    if (pid == 0) {
        pthread_t t;
        pthread_create(&t, NULL, forbidden, NULL);
        pthread_join(t, NULL);
        _exit(3);
    }
    printf("one of two: %s\n", wait_text(pid));
    return finish();
}

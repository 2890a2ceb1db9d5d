/* seccomp beyond one process image: filters survive execve, reach other threads with TSYNC, and are limited and refused as
 * natively; arithmetic of every kind; signals blocked or ignored; PR_SET_MDWE. */
#include "guest.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define LOAD(f) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, f))
#define IS(nr, action) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)
#define ELSE(action) BPF_STMT(BPF_RET | BPF_K, action)
#define PROGRAM(...)                                                                                                   \
    &(struct sock_fprog) {                                                                                             \
        sizeof(struct sock_filter[]){__VA_ARGS__} / sizeof(struct sock_filter), (struct sock_filter[]) { __VA_ARGS__ } \
    }

static long filter(unsigned flags, struct sock_fprog *p) {
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, p);
}
static void privs(void) { prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

static const char *self;
static void over_exec(void) {
    privs();
    CHECK(filter(0, PROGRAM(LOAD(nr), IS(SYS_getppid, SECCOMP_RET_ERRNO | 77), ELSE(SECCOMP_RET_ALLOW))) == 0);
    CHECK(filter(0, PROGRAM(LOAD(nr), IS(SYS_getpgrp, SECCOMP_RET_ERRNO | 78), ELSE(SECCOMP_RET_ALLOW))) == 0);
    execl(self, self, "after", NULL);
}
static int after(void) {
    CHECK(syscall(SYS_getppid) == -1 && errno == 77);
    CHECK(syscall(SYS_getpgrp) == -1 && errno == 78);
    char text[8192];
    slurp("/proc/self/status", text, sizeof text);
    printf("after exec: mode %d, status %d %d\n", prctl(PR_GET_SECCOMP), has_text(text, "Seccomp:\t2\n"),
           has_text(text, "Seccomp_filters:\t2\n"));
    return failures;
}
static void no_exec(void) {
    privs();
    CHECK(filter(0, PROGRAM(LOAD(nr), IS(SYS_execve, SECCOMP_RET_ERRNO | EPERM), ELSE(SECCOMP_RET_ALLOW))) == 0);
    CHECK(execl("/bin/true", "true", NULL) == -1 && errno == EPERM);
}

static pthread_barrier_t barrier;
static void *waiting(void *arg) {
    if (arg) filter(0, PROGRAM(ELSE(SECCOMP_RET_ALLOW)));
    pthread_barrier_wait(&barrier), pthread_barrier_wait(&barrier);
    return (void *)syscall(SYS_getppid);
}
static void sync_threads(void) {
    privs();
    pthread_t t;
    void *r;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&t, NULL, waiting, NULL), pthread_barrier_wait(&barrier);
    CHECK(filter(SECCOMP_FILTER_FLAG_TSYNC,
                 PROGRAM(LOAD(nr), IS(SYS_getppid, SECCOMP_RET_ERRNO | 5), ELSE(SECCOMP_RET_ALLOW))) == 0);
    pthread_barrier_wait(&barrier), pthread_join(t, &r);
    printf("other thread: %ld\n", (long)r);
    pthread_create(&t, NULL, waiting, (void *)1), pthread_barrier_wait(&barrier);
    long odd = filter(SECCOMP_FILTER_FLAG_TSYNC, PROGRAM(ELSE(SECCOMP_RET_ALLOW)));
    printf("a thread with a filter of its own: %d\n", odd > 0 && odd != getpid());
    pthread_barrier_wait(&barrier), pthread_join(t, &r);
}
static void arithmetic(void) { /* args[0] decides which result comes back as errno */
    privs();
    CHECK(filter(0, PROGRAM(LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgrp, 1, 0), ELSE(SECCOMP_RET_ALLOW),
                            LOAD(args[0]), BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_MISC | BPF_TAX, 0),
                            BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 7), BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
                            BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 3), BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 2),
                            BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 3), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1),
                            BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0), BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 1),
                            BPF_STMT(BPF_LDX | BPF_MEM, 3), BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
                            BPF_STMT(BPF_ALU | BPF_NEG, 0), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
                            BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO), BPF_STMT(BPF_RET | BPF_A, 0))) == 0);
    for (long i = 1; i < 6; i++) {
        long r = syscall(SYS_getpgrp, i * 37);
        printf("%ld ", r == -1 ? -errno : r);
    }
    puts("");
}
static void limits(void) {
    struct sock_filter f[4096];
    for (int i = 0; i < 4096; i++) f[i] = (struct sock_filter)ELSE(SECCOMP_RET_ALLOW);
    struct sock_fprog p = {4096, f};
    if (getuid()) CHECK(filter(0, &p) == -1 && errno == EACCES);
    privs();
    int n = 0;
    while (filter(0, &p) == 0) n++;
    printf("some large filters: %d, then %s\n", n > 1 && n < 9, strerror(errno));
    CHECK(filter(1u << 30, &p) == -1 && errno == EINVAL);
    CHECK(filter(0, NULL) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(uint32_t){0x12340000}) == -1 && errno == EOPNOTSUPP);
}
static void *killed(void *arg) {
    syscall(SYS_getppid);
    return arg;
}
static void one_thread(void) {
    privs();
    filter(0, PROGRAM(LOAD(nr), IS(SYS_getppid, SECCOMP_RET_KILL_THREAD), ELSE(SECCOMP_RET_ALLOW)));
    pthread_t t;
    pthread_create(&t, NULL, killed, NULL), pthread_join(t, NULL);
    puts("the others live on");
}
static void trap_ignored(void) {
    privs(), signal(SIGSYS, SIG_IGN);
    filter(0, PROGRAM(LOAD(nr), IS(SYS_getppid, SECCOMP_RET_TRAP), ELSE(SECCOMP_RET_ALLOW)));
    syscall(SYS_getppid), puts("FAIL: survived");
}
static void traced(void) {
    privs();
    filter(0, PROGRAM(LOAD(nr), IS(SYS_getppid, SECCOMP_RET_TRACE), IS(SYS_getpgrp, SECCOMP_RET_LOG),
                      ELSE(SECCOMP_RET_ALLOW)));
    CHECK(syscall(SYS_getppid) == -1 && errno == ENOSYS);
    CHECK(syscall(SYS_getpgrp) == getpgrp());
}
static void mdwe(void) {
    if (prctl(65, 1, 0, 0, 0)) return; /* PR_SET_MDWE: Linux 6.3 */
    CHECK(prctl(66, 0, 0, 0, 0) == 1);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
          errno == EACCES);
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mprotect(p, 4096, PROT_READ | PROT_EXEC) == -1 && errno == EACCES);
    p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && mprotect(p, 4096, PROT_EXEC) == 0 && mprotect(p, 4096, PROT_READ) == 0);
    CHECK(prctl(65, 0, 0, 0, 0) == -1 && errno == EPERM);
    execl("/bin/echo", "echo", "still runs", NULL);
}

int main(int argc, char **argv) {
    self = argv[0];
    if (argc > 1) return after();
    static const struct {
        const char *name;
        void (*f)(void);
    } rows[] = {{"over exec", over_exec},       {"no exec", no_exec}, {"threads", sync_threads},
                {"arithmetic", arithmetic},     {"limits", limits},   {"one thread", one_thread},
                {"trap ignored", trap_ignored}, {"traced", traced},   {"write or execute", mdwe}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        pid_t pid = fork();
        if (!pid) rows[i].f(), _exit(failures);
        printf("%s -> %s\n", rows[i].name, wait_text(pid));
    }
    return finish();
}

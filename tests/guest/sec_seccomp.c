/* seccomp filters: ERRNO, TRAP with context, KILL of thread and process, ALLOW, argument checks, two filters, inheritance. */
#include "guest.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define LOAD(f) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, f))
#define IS(nr, action) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)
#define ELSE(action) BPF_STMT(BPF_RET | BPF_K, action)

static int install(struct sock_filter *f, unsigned short n) {
    struct sock_fprog p = {n, f};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}
#define INSTALL(...)                            \
    ({                                          \
        struct sock_filter f[] = {__VA_ARGS__}; \
        install(f, sizeof f / sizeof *f);       \
    })

static volatile int trapped, trap_nr, trap_errno, trap_pc_ok;
static void on_sys(int sig, siginfo_t *si, void *ctx) {
    (void)sig;
    ucontext_t *uc = ctx;
    trapped++, trap_nr = si->si_syscall, trap_errno = si->si_errno;
    uint8_t *pc = (uint8_t *)uc->uc_mcontext.gregs[REG_RIP];
    trap_pc_ok = pc[-2] == 0x0f && pc[-1] == 0x05 && si->si_call_addr == pc;
    uc->uc_mcontext.gregs[REG_RAX] = 4321; /* the emulated result */
}
static void *in_thread(void *arg) {
    (void)arg;
    syscall(SYS_getppid);
    return (void *)1;
}

static void errno_filter(void) {
    CHECK(INSTALL(LOAD(nr), IS(SYS_getppid, SECCOMP_RET_ERRNO | 99), IS(SYS_uname, SECCOMP_RET_ERRNO | 0),
                  ELSE(SECCOMP_RET_ALLOW)) == 0);
    long r = syscall(SYS_getppid);
    printf("errno: %ld %d\n", r, errno);
    char buf[1000] = "";
    printf("pretended: %ld, nothing written %d\n", syscall(SYS_uname, buf), buf[0] == 0);
    /* a second filter is stricter */
    CHECK(INSTALL(LOAD(nr), IS(SYS_getpgrp, SECCOMP_RET_ERRNO | 88), IS(SYS_getppid, SECCOMP_RET_ALLOW),
                  ELSE(SECCOMP_RET_ALLOW)) == 0);
    CHECK(syscall(SYS_getpgrp) == -1 && errno == 88);
    CHECK(syscall(SYS_getppid) == -1 && errno == 99);
    printf("mode %d\n", prctl(PR_GET_SECCOMP));
    pid_t pid = fork();
    if (!pid) _exit(syscall(SYS_getppid) == -1 && errno == 99 ? 3 : 4);
    printf("inherited: %s\n", wait_text(pid));
    char text[8192];
    slurp("/proc/self/status", text, sizeof text);
    printf("status: %d\n", has_text(text, "Seccomp:\t2\n"));
    pid = fork();
    if (!pid) execl("/bin/sh", "sh", "-c", "echo after exec", NULL), _exit(9);
    puts(wait_text(pid));
}
static void arguments(void) { /* write to descriptor 7 is refused; architecture is checked */
    CHECK(INSTALL(LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
                  ELSE(SECCOMP_RET_KILL_PROCESS), LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3),
                  LOAD(args[0]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 1), ELSE(SECCOMP_RET_ERRNO | EDOM),
                  ELSE(SECCOMP_RET_ALLOW)) == 0);
    CHECK(write(7, "x", 1) == -1 && errno == EDOM);
    puts("write to 1 works");
}
static void trap(void) {
    handle(SIGSYS, on_sys, 0);
    CHECK(INSTALL(LOAD(nr), IS(SYS_getppid, SECCOMP_RET_TRAP | 55), ELSE(SECCOMP_RET_ALLOW)) == 0);
    long r = syscall(SYS_getppid);
    printf("trap: result %ld, %d times, call %d, errno %d, pc after the call %d\n", r, trapped, trap_nr == SYS_getppid,
           trap_errno, trap_pc_ok);
}
static void kill_process(void) {
    CHECK(INSTALL(LOAD(nr), IS(SYS_getppid, SECCOMP_RET_KILL_PROCESS), ELSE(SECCOMP_RET_ALLOW)) == 0);
    pthread_t t;
    pthread_create(&t, NULL, in_thread, NULL), pthread_join(t, NULL);
    puts("FAIL: survived");
}
static void kill_thread(void) {
    CHECK(INSTALL(LOAD(nr), IS(SYS_getppid, SECCOMP_RET_KILL_THREAD), ELSE(SECCOMP_RET_ALLOW)) == 0);
    syscall(SYS_getppid);
    puts("FAIL: survived");
}
static void strict(void) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    (void)!write(1, "strict: write works\n", 20);
    syscall(SYS_getpid);
    (void)!write(1, "FAIL\n", 5);
}
static void strict_ok(void) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    syscall(SYS_exit, 6);
}
static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void tight(void) { /* only write, exit, exit_group: whatever we need ourselves is not the program's to allow */
    CHECK(INSTALL(LOAD(nr), IS(SYS_write, SECCOMP_RET_ALLOW), IS(SYS_exit_group, SECCOMP_RET_ALLOW),
                  ELSE(SECCOMP_RET_KILL_PROCESS)) == 0);
    for (volatile int i = 0; i < 100; i++) qsort((int[]){3, 1, 2}, 3, sizeof(int), by_value);
    (void)!write(1, "tight: new code ran\n", 20);
    _exit(7);
}
static void invalid(void) {
    struct sock_filter bad[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 1000), ELSE(SECCOMP_RET_ALLOW)};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    CHECK(install(bad, 2) == -1 && errno == EINVAL);
    CHECK(install(bad, 0) == -1 && errno == EINVAL);
    struct sock_filter noret[] = {LOAD(nr)};
    CHECK(install(noret, 1) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(uint32_t){SECCOMP_RET_ERRNO}) == 0);
    CHECK(syscall(SYS_seccomp, 99, 0, NULL) == -1 && errno == EINVAL);
    printf("mode %d\n", prctl(PR_GET_SECCOMP));
}

int main(void) {
    static const struct {
        const char *name;
        void (*f)(void);
    } rows[] = {{"errno", errno_filter},
                {"arguments", arguments},
                {"trap", trap},
                {"kill process", kill_process},
                {"kill thread", kill_thread},
                {"strict", strict},
                {"strict exit", strict_ok},
                {"tight", tight},
                {"invalid", invalid}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        pid_t pid = fork();
        if (!pid) rows[i].f(), _exit(failures);
        printf("%s -> %s\n", rows[i].name, wait_text(pid));
    }
    return finish();
}

/* SECCOMP_RET_TRACE: the tracer is asked, and lets the call be made, changes it, or answers it itself; without one it fails. */
#include "guest.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/user.h>

/* <sys/ptrace.h> does not go with <linux/ptrace.h>. */
long ptrace(int request, ...);

#define CALL(nr, action) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)

static void filter(void) {
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              CALL(SYS_getppid, SECCOMP_RET_TRACE | 1),
                              CALL(SYS_getpgid, SECCOMP_RET_TRACE | 2),
                              CALL(SYS_getsid, SECCOMP_RET_TRACE | 3),
                              CALL(SYS_umask, SECCOMP_RET_ERRNO | 5),
                              CALL(SYS_mmap, SECCOMP_RET_TRACE | 4),
                              CALL(SYS_fork, SECCOMP_RET_TRACE | 6),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) == 0);
}

static const char *text(long ret) {
    static char s[40];
    snprintf(s, sizeof s, "%s %d", ret < 0 ? "error" : "result", ret < 0 ? errno : (int)ret);
    return s;
}

static void calls(void) {
    errno = 0;
    printf("getppid: %d\n", syscall(SYS_getppid) > 0);
    printf("getpgid: %s\n", text(syscall(SYS_getpgid, 0)));
    printf("getsid: %s\n", text(syscall(SYS_getsid, 0)));
    printf("umask: %s\n", text(syscall(SYS_umask, 0)));
    char *memory = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memory[0] = 1;
    printf("mmap: %d\n", memory != MAP_FAILED);
    pid_t pid = (pid_t)syscall(SYS_fork);
    if (pid == 0) _exit(3);
    if (pid > 0) printf("child: %s\n", wait_text(pid));
    if (pid < 0) printf("fork: %s\n", text(pid));
}

static int tracee(void) {
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGCHLD), sigprocmask(SIG_BLOCK, &set, NULL);
    CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
    raise(SIGSTOP);
    filter();
    calls();
    return 9;
}

static void answer(pid_t pid, unsigned long message, const struct user_regs_struct *now) {
    struct user_regs_struct r = *now;
    if (message == 2) { /* answered */
        r.orig_rax = -1;
        r.rax = 1234;
    } else if (message == 3) { /* another call instead, which the filter answers */
        r.orig_rax = SYS_umask;
    }
    CHECK(ptrace(PTRACE_SETREGS, pid, 0, &r) == 0);
}

static void trace(int how) {
    int status;
    pid_t pid = fork();
    if (!pid) _exit(tracee());
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD) == 0);
    for (;;) {
        CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid);
        if (!WIFSTOPPED(status)) break;
        unsigned long message = 0;
        struct user_regs_struct r;
        struct ptrace_syscall_info info = {0};
        CHECK(ptrace(PTRACE_GETREGS, pid, 0, &r) == 0);
        CHECK(ptrace(PTRACE_GETEVENTMSG, pid, 0, &message) == 0);
        CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 80);
        printf("tracer: event %d, message %lu, call %lld, rax %lld, info %d %lld %u\n", status >> 16, message,
               r.orig_rax, r.rax, info.op, info.seccomp.nr, info.seccomp.ret_data);
        answer(pid, message, &r);
        if (how == PTRACE_CONT) continue;
        CHECK(ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid);
        CHECK(ptrace(PTRACE_GETREGS, pid, 0, &r) == 0);
        CHECK(ptrace(PTRACE_GETEVENTMSG, pid, 0, &message) == 0);
        printf("tracer: behind the call: %s, failed %d, message %lu\n", status_text(status), (long)r.rax < 0, message);
    }
    printf("end: %s\n", status_text(status));
}

int main(void) {
    puts("-- nobody traces");
    pid_t pid = fork();
    if (!pid) filter(), calls(), _exit(0);
    printf("%s\n", wait_text(pid));
    puts("-- traced");
    trace(PTRACE_CONT);
    puts("-- traced, to the end of each call");
    trace(PTRACE_SYSCALL);
    return finish();
}

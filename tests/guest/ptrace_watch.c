/* Debug registers of a tracee: a place that it comes to, memory that it changes; not what the kernel writes or children do. And
 * single steps over calls: what is shown, once, and that children do not go on stepping. */
#include "guest.h"
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

static volatile long watched, other;
static volatile short narrow[4];

__attribute__((noinline)) static void place(long n) { other += n; }

static void *thread(void *arg) {
    watched += 100;
    place(5);
    return arg;
}

static void children(void) {
    pthread_t t;
    pid_t pid = fork();
    if (!pid) watched = 1, place(1), _exit(7);
    CHECK(!strcmp("exit 7", wait_text(pid)));
    CHECK(pthread_create(&t, NULL, thread, NULL) == 0);
    CHECK(pthread_join(t, NULL) == 0);
}

static int tracee(void) {
    int fds[2];
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGCHLD), sigprocmask(SIG_BLOCK, &set, NULL);
    CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
    CHECK(pipe(fds) == 0);
    raise(SIGSTOP);
    place(3);
    watched = 11;
    for (int i = 0; i < 1000; i++) other += i;
    CHECK(write(fds[1], "abcdefgh", 8) == 8 && read(fds[0], (void *)&watched, 8) == 8);
    children();
    narrow[0] = 1, narrow[2] = 2, narrow[1] = 3, narrow[1] = 3;
    *(volatile int *)narrow = 0;
    watched = 12;
    raise(SIGSTOP);
    place(4); /* by then nothing is watched */
    watched = 13;
    pid_t pid = (pid_t)syscall(SYS_fork);
    if (!pid) _exit(8);
    CHECK(!strcmp("exit 8", wait_text(pid)));
    return failures;
}

#define DEBUGREG(i) (void *)offsetof(struct user, u_debugreg[i])

static void set(pid_t pid, int i, unsigned long word) {
    long ret = ptrace(PTRACE_POKEUSER, pid, DEBUGREG(i), word);
    if (ret) printf("debug register %d: %s\n", i, strerror(errno));
}

static int go(pid_t pid, int request, const char *what) {
    int status = 0;
    siginfo_t info = {0};
    struct user_regs_struct r = {0};
    CHECK(ptrace(request, pid, 0, 0) == 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("%s: %s", what, status_text(status));
    if (WIFSTOPPED(status)) {
        CHECK(ptrace(PTRACE_GETSIGINFO, pid, 0, &info) == 0 && ptrace(PTRACE_GETREGS, pid, 0, &r) == 0);
        printf(", signal %d, dr6 %lx, %s, watched %lx", WSTOPSIG(status),
               ptrace(PTRACE_PEEKUSER, pid, DEBUGREG(6), 0) & 15, r.rip == (uintptr_t)place ? "there" : "elsewhere",
               ptrace(PTRACE_PEEKDATA, pid, (void *)&watched, 0));
        if (WSTOPSIG(status) == SIGTRAP) printf(", code %d", info.si_code);
    }
    puts("");
    return status;
}

/* Until the call that makes a child, and over it. */
static void step_over_fork(pid_t pid) {
    struct user_regs_struct r;
    int status;
    for (;;) {
        CHECK(ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid);
        CHECK(ptrace(PTRACE_GETREGS, pid, 0, &r) == 0);
        if (!WIFSTOPPED(status) || r.orig_rax == SYS_fork) break;
    }
    printf("behind fork: %s, a child %d\n", status_text(status), (long)r.rax > 0);
    CHECK(ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid);
    CHECK(ptrace(PTRACE_GETREGS, pid, 0, &r) == 0);
    printf("the next call is %lld, not yet made: %d\n", r.orig_rax, (long)r.rax == -ENOSYS);
}

int main(void) {
    pid_t pid = fork();
    if (!pid) _exit(tracee());
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    set(pid, 0, (uintptr_t)place);
    set(pid, 1, (uintptr_t)&watched + 1);
    set(pid, 7, 1 | 4 | 0x9u << 20); /* eight bytes, not aligned */
    set(pid, 7, 1 | 0x2u << 16);     /* no such kind */
    set(pid, 7, 1 | 0x4u << 16);     /* a place has no length */
    set(pid, 1, -1ul);
    set(pid, 5, 0);
    set(pid, 1, (uintptr_t)&watched);
    set(pid, 2, (uintptr_t)&narrow[1]);
    set(pid, 7, 1 | 4 | 16 | 0x9u << 20 | 0x5u << 24);
    printf("dr7 %lx\n", ptrace(PTRACE_PEEKUSER, pid, DEBUGREG(7), 0));
    go(pid, PTRACE_CONT, "the place");
    go(pid, PTRACE_CONT, "a store");
    while (WIFSTOPPED(status = go(pid, PTRACE_CONT, "then")) && WSTOPSIG(status) != SIGSTOP) {}
    set(pid, 7, 0);
    step_over_fork(pid);
    do CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid);
    while (WIFSTOPPED(status));
    printf("end: %s\n", status_text(status));
    return finish();
}

// System-call stops: seen, counted, changed; children that are followed; exec; the end. What strace does.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void child(char *self) {
    kill(getpid(), SIGSTOP);
    char text[] = "written by the child\n";
    write(1, text, sizeof text - 1);
    printf("getppid gives %ld\n", (long)syscall(SYS_getppid)); /* changed */
    printf("skipped %ld %s\n", (long)syscall(SYS_getuid), strerror(errno));
    fflush(stdout);
    if (fork() == 0) _exit(9);
    wait(NULL);
    char *args[] = {self, "exec", NULL};
    execv(self, args);
    _exit(99);
}

static const char *event_name(int event) {
    switch (event) {
    case PTRACE_EVENT_FORK: return "fork";
    case PTRACE_EVENT_EXEC: return "exec";
    case PTRACE_EVENT_EXIT: return "exit";
    case PTRACE_EVENT_STOP: return "stop";
    default: return "other";
    }
}

static void at_entry(pid_t pid, struct user_regs_struct *regs) {
    switch (regs->orig_rax) {
    case SYS_write: {
        char text[64] = {0};
        struct iovec here = {text, sizeof text - 1}, there = {(void *)regs->rsi, regs->rdx < 40 ? regs->rdx : 40};
        ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (regs->rdx == 21) printf("write of %zd bytes: %s", n, text);
        break;
    }
    case SYS_getuid:
        regs->orig_rax = -1;
        ptrace(PTRACE_SETREGS, pid, 0, regs);
        break;
    }
}

static void at_exit(pid_t pid, struct user_regs_struct *regs) {
    if (regs->orig_rax != SYS_getppid) return;
    regs->rax = 4711;
    ptrace(PTRACE_SETREGS, pid, 0, regs);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) {
        printf("after exec\n");
        return 5;
    }
    pid_t first = fork();
    if (first == 0) child(argv[0]);
    int status;
    waitpid(first, &status, WUNTRACED);
    printf("stopped %d\n", WIFSTOPPED(status));
    long options =
        PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL;
    printf("seize %ld\n", ptrace(PTRACE_SEIZE, first, 0, options));
    kill(first, SIGCONT);
    int calls = 0, entries = 0, exits = 0;
    pid_t second = 0;
    unsigned long told = 0;
    int ended = 0;
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0) break;
        if (WIFEXITED(status)) {
            if (pid == first) printf("first exited with %d\n", WEXITSTATUS(status));
            if (pid != first) ended = WEXITSTATUS(status); /* maybe before one is told that it was made */
            continue;
        }
        int event = status >> 16, signo = WSTOPSIG(status), deliver = 0;
        if (signo == (SIGTRAP | 0x80)) {
            struct user_regs_struct regs;
            struct iovec v = {&regs, sizeof regs};
            ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v);
            struct __ptrace_syscall_info info;
            ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
            if (pid == first) {
                calls++;
                if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
                    entries++, at_entry(pid, &regs);
                else
                    exits++, at_exit(pid, &regs);
            }
        } else if (event) {
            unsigned long message = 0;
            ptrace(PTRACE_GETEVENTMSG, pid, 0, &message);
            if (event == PTRACE_EVENT_FORK) second = (pid_t)message;
            /* which process is first, and how often it stops around SIGCONT, is a matter of luck */
            if (event == PTRACE_EVENT_EXIT && pid != first)
                told = message;
            else if (event != PTRACE_EVENT_STOP)
                printf("event %s %lx\n", event_name(event), event == PTRACE_EVENT_EXIT ? message : 0);
        } else if (signo != SIGCONT && signo != SIGCHLD) {
            deliver = signo;
        }
        if (ptrace(PTRACE_SYSCALL, pid, 0, (long)deliver) && errno != ESRCH) printf("no go: %s\n", strerror(errno));
    }
    printf("second exited with %d, was about to with %lx\n", ended, told);
    printf("calls %d, entries and exits differ by %d, second %d\n", calls > 20, entries - exits, second > 0);
    return 0;
}

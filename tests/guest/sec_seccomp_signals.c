/* Signals amid calls that a seccomp filter answers: those leave no trace in a recording, and the signals come at the right ones. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static volatile unsigned long denied, allowed, sum;
static volatile int alarms;

static void on_alarm(int sig) {
    (void)sig;
    alarms++;
    sum = sum * 31 + denied + 7 * allowed; /* where it came */
}

int main(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 123),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
    signal(SIGALRM, on_alarm);
    struct itimerval every = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &every, NULL);
    while (alarms < 40 && denied < 30000000) {
        for (int i = 0; i < 50; i++)
            if (syscall(SYS_getppid) == -1 && errno == 123) denied++;
        allowed += getpid() > 0;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    printf("%s\n", alarms >= 40 && denied >= 50 ? "fine" : "wrong");
    return 0;
}

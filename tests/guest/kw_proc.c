/* The kernel writes into pages with executed code: processes, time, signals, the system. */
#include "kw_page.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>

static pid_t child(int status) {
    pid_t pid = fork();
    if (!pid) _exit(status);
    return pid;
}

int main(void) {
    KW("clock_gettime", CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, out) == 0 && *(long *)out > 1000000););
    KW("clock_getres", CHECK(syscall(SYS_clock_getres, CLOCK_REALTIME, out) == 0 && ((long *)out)[1] > 0););
    KW("gettimeofday", CHECK(syscall(SYS_gettimeofday, out, out + 64) == 0 && *(long *)out > 1000000););
    KW("time", CHECK(syscall(SYS_time, out) == *(long *)out););
    KW("times", CHECK(syscall(SYS_times, out) > 0););
    KW("wait4", pid_t pid = child(9); CHECK(syscall(SYS_wait4, pid, out, 0, out + 256) == pid &&
                                            WEXITSTATUS(*(int *)out) == 9 && *(long *)(out + 256 + 32) > 0););
    KW("waitid", pid_t pid = child(8); siginfo_t *si = (void *)out;
       CHECK(syscall(SYS_waitid, P_PID, pid, si, WEXITED, out + 256) == 0 && si->si_status == 8 && si->si_pid == pid););
    KW("getrlimit", CHECK(syscall(SYS_getrlimit, RLIMIT_NOFILE, out) == 0 && *(long *)out != 0););
    KW("prlimit64", CHECK(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, out) == 0 && *(long *)out != 0););
    KW("getrusage", CHECK(syscall(SYS_getrusage, RUSAGE_SELF, out) == 0 && *(long *)(out + 32) > 0););
    KW("sched_getaffinity", CHECK(syscall(SYS_sched_getaffinity, 0, 1000, out) > 0 && *(long *)out != 0););
    KW("sched_getparam", *(int *)out = 77; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_sched_getparam, 0, out) == 0 && *(int *)out == 0););
    KW("sched_rr_get_interval", ((long *)out)[1] = -1; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_sched_rr_get_interval, 0, out) == 0 && ((long *)out)[1] >= 0););
    KW("sched_getattr", CHECK(syscall(SYS_sched_getattr, 0, out, 56, 0) == 0 && *(int *)out > 0););
    KW("getcpu", *(int *)out = -1; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_getcpu, out, out + 64, NULL) == 0 && *(int *)out >= 0););
    KW("getrandom", int sum = 0; CHECK(syscall(SYS_getrandom, out, 256, 0) == 256);
       for (int i = 0; i < 256; i++) sum += (uint8_t)out[i]; CHECK(sum > 0););
    KW("sysinfo", CHECK(syscall(SYS_sysinfo, out) == 0 && ((struct sysinfo *)out)->procs > 0););
    KW("uname", CHECK(syscall(SYS_uname, out) == 0 && !strcmp(out, "Linux")););
    KW("getresuid", int *v = (void *)out; v[0] = v[1] = v[2] = -5; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_getresuid, v, v + 1, v + 2) == 0 && v[0] == (int)getuid() && v[1] == (int)geteuid()););
    KW("getgroups", CHECK(syscall(SYS_getgroups, 200, out) >= 0););
    KW("capget", int *v = (void *)out; v[0] = 0x20080522; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_capget, v, out + 64) == 0););
    KW("prctl PR_GET_NAME", CHECK(prctl(PR_GET_NAME, out) == 0 && out[0] != 0););
    KW("get_robust_list", CHECK(syscall(SYS_get_robust_list, 0, out, out + 8) == 0 && *(long *)(out + 8) == 24););
    KW("mincore", CHECK(syscall(SYS_mincore, k.page, 4096, out) == 0 && (out[0] & 1)););
    KW("getitimer", struct itimerval t = {.it_value.tv_sec = 500}; CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
       CHECK(syscall(SYS_getitimer, ITIMER_REAL, out) == 0 && ((long *)out)[2] > 400););
    KW("setitimer", struct itimerval t = {0};
       CHECK(syscall(SYS_setitimer, ITIMER_REAL, &t, out) == 0 && ((long *)out)[2] > 400););
    KW("timer_create", struct sigevent e = {.sigev_notify = SIGEV_NONE}; *(int *)out = -1; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &e, out) == 0 && *(int *)out >= 0); int id = *(int *)out;
       struct itimerspec t = {.it_value.tv_sec = 300}; CHECK(syscall(SYS_timer_settime, id, 0, &t, out + 64) == 0);
       CHECK(kw_run(k) == k.value && syscall(SYS_timer_gettime, id, out + 128) == 0 && ((long *)(out + 128))[2] > 200);
       CHECK(syscall(SYS_timer_delete, id) == 0););
    int tf = timerfd_create(CLOCK_MONOTONIC, 0);
    KW("timerfd", struct itimerspec t = {.it_value.tv_sec = 300};
       CHECK(syscall(SYS_timerfd_settime, tf, 0, &t, out) == 0 && kw_run(k) == k.value);
       CHECK(syscall(SYS_timerfd_gettime, tf, out + 64) == 0 && ((long *)(out + 64))[2] > 200););
    sigset_t usr1;
    sigemptyset(&usr1), sigaddset(&usr1, SIGUSR1);
    KW("rt_sigprocmask", memset(out, 9, 8); CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &usr1, out, 8) == 0 && *(long *)out == 0););
    KW("rt_sigpending", raise(SIGUSR1);
       CHECK(syscall(SYS_rt_sigpending, out, 8) == 0 && *(long *)out == 1 << (SIGUSR1 - 1)););
    KW("rt_sigtimedwait", struct timespec t = {5, 0};
       CHECK(syscall(SYS_rt_sigtimedwait, &usr1, out, &t, 8) == SIGUSR1 && ((siginfo_t *)out)->si_signo == SIGUSR1););
    KW("rt_sigaction", CHECK(syscall(SYS_rt_sigaction, SIGUSR2, NULL, out, 8) == 0););
    KW("sigaltstack", CHECK(syscall(SYS_sigaltstack, NULL, out) == 0 && *(int *)(out + 8) == SS_DISABLE););
    KW("arch_prctl", CHECK(syscall(SYS_arch_prctl, 0x1003 /* ARCH_GET_FS */, out) == 0 && *(long *)out != 0););
    KW("process_vm_readv", char text[] = "remote text"; struct iovec to = {out, 11}; struct iovec from = {text, 11};
       CHECK(process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 11 && !strcmp(out, text)););
    KW("process_vm_writev", char text[] = "remote text"; struct iovec to = {out, 11}; struct iovec from = {text, 11};
       CHECK(process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 11 && !strcmp(out, text)););
    KW("futex, shared wait", *(int *)out = 5; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_futex, out, FUTEX_WAIT, 6, NULL, NULL, 0) == -1 && errno == EAGAIN);
       CHECK(kw_run(k) == k.value && syscall(SYS_futex, out, FUTEX_WAKE, 1, NULL, NULL, 0) == 0););
    KW("futex, wake and add", CHECK(syscall(SYS_futex, out, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 1, 1, out + 64,
                                            FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 0)) == 0);
       CHECK(*(int *)(out + 64) == 3););
    KW("futex, priority inheritance",
       CHECK(syscall(SYS_futex, out, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0) == 0 &&
             *(int *)out == gettid());
       CHECK(kw_run(k) == k.value &&
             syscall(SYS_futex, out, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0) == 0 &&
             *(int *)out == 0););
    KW("clone with tid words", *(int *)out = -1; CHECK(kw_run(k) == k.value);
       pid_t pid = syscall(SYS_clone, CLONE_PARENT_SETTID | SIGCHLD, NULL, out, NULL, NULL); if (!pid) _exit(0);
       CHECK(*(int *)out == pid && waitpid(pid, NULL, 0) == pid););
    int q = msgget(IPC_PRIVATE, 0600), sem = semget(IPC_PRIVATE, 2, 0600);
    if (q >= 0) {
        struct {
            long type;
            char text[8];
        } m = {3, "queued"};
        CHECK(msgsnd(q, &m, 7, 0) == 0);
        KW("msgrcv", CHECK(msgrcv(q, out, 100, 0, 0) == 7 && *(long *)out == 3 && !strcmp(out + 8, "queued")););
        KW("msgctl", CHECK(msgctl(q, IPC_STAT, (void *)out) == 0););
        msgctl(q, IPC_RMID, NULL);
    } else
        puts("msgrcv: ok\nmsgctl: ok");
    if (sem >= 0) {
        KW("semctl IPC_STAT",
           CHECK(syscall(SYS_semctl, sem, 0, IPC_STAT, out) == 0 && ((struct semid_ds *)out)->sem_nsems == 2););
        KW("semctl GETALL", memset(out, 1, 4); CHECK(kw_run(k) == k.value);
           CHECK(syscall(SYS_semctl, sem, 0, GETALL, out) == 0 && *(int *)out == 0););
        semctl(sem, 0, IPC_RMID);
    } else
        puts("semctl IPC_STAT: ok\nsemctl GETALL: ok");
    KW("an unknown call", CHECK(syscall(5000, out, 1, 2, 3) == -1 && errno == ENOSYS););
    return finish();
}

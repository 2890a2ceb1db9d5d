/* Limits, priorities, usage, personality, prctl odds and ends, sysinfo-like calls. */
#include "guest.h"
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>

static void *thread(void *arg) { return arg; }
int main(void) {
    struct rlimit r, s;
    for (int i = 0; i < RLIMIT_NLIMITS; i++) CHECK(getrlimit(i, &r) == 0 && r.rlim_cur <= r.rlim_max);
    getrlimit(RLIMIT_STACK, &r);
    s = r, s.rlim_cur = 1 << 20;
    CHECK(setrlimit(RLIMIT_STACK, &s) == 0 && getrlimit(RLIMIT_STACK, &s) == 0 && s.rlim_cur == 1 << 20);
    setrlimit(RLIMIT_STACK, &r);
    CHECK(prlimit(0, RLIMIT_CPU, NULL, &s) == 0);
    CHECK(getrlimit(99, &r) == -1 && errno == EINVAL);

    pid_t pid = fork();
    if (!pid) {
        struct rlimit c = {1, 2};
        setrlimit(RLIMIT_CPU, &c);
        for (;;) {}
    }
    printf("cpu limit: %s\n", wait_text(pid));
    pid = fork();
    if (!pid) {
        struct rlimit c = {4096, 4096};
        setrlimit(RLIMIT_FSIZE, &c), signal(SIGXFSZ, SIG_IGN);
        int fd = open("big", O_CREAT | O_WRONLY, 0600);
        char b[8192] = "";
        _exit(write(fd, b, 8192) == 4096 && write(fd, b, 1) == -1 && errno == EFBIG ? 3 : 4);
    }
    printf("file limit: %s\n", wait_text(pid));
    unlink("big");
    pid = fork();
    if (!pid) {
        struct rlimit c = {600 << 20, 600 << 20}; /* a program under a tight address space still works */
        setrlimit(RLIMIT_AS, &c);
        void *p = malloc(900 << 20);
        pthread_t t;
        bool ok = !p && pthread_create(&t, NULL, thread, NULL) == 0 && pthread_join(t, NULL) == 0;
        _exit(ok ? 5 : 6);
    }
    printf("address space limit: %s\n", wait_text(pid));

    struct rusage u;
    bool seen = false; /* the kernel samples who uses the processor, some hundred times a second */
    for (int round = 0; round < 300 && !seen; round++) {
        for (volatile long i = 0; i < 30000000; i++) {}
        seen = getrusage(RUSAGE_SELF, &u) == 0 && (u.ru_utime.tv_usec || u.ru_utime.tv_sec);
    }
    CHECK(seen && u.ru_maxrss > 0);
    struct tms tm;
    CHECK(times(&tm) != -1 && clock() > 0);
    CHECK(getpriority(PRIO_PROCESS, 0) >= -20 && nice(0) >= -20);
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= 1 && sysconf(_SC_NPROCESSORS_ONLN) >= 1);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0 && sched_getcpu() >= 0 && CPU_ISSET(sched_getcpu(), &set));
    CHECK(sched_getscheduler(0) == SCHED_OTHER);
    printf("personality %x\n", personality(0xffffffff) & 0xff);
    CHECK(prctl(PR_SET_PDEATHSIG, SIGTERM) == 0);
    int sig = 0;
    CHECK(prctl(PR_GET_PDEATHSIG, &sig) == 0 && sig == SIGTERM);
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
    CHECK(prctl(PR_SET_KEEPCAPS, 0) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && prctl(9999, 0, 0, 0, 0) == -1 && errno == EINVAL);
    struct utsname un;
    struct sysinfo si;
    CHECK(uname(&un) == 0 && !strcmp(un.sysname, "Linux") && !strcmp(un.machine, "x86_64") && sysinfo(&si) == 0);
    CHECK(syscall(500) == -1 && errno == ENOSYS);
    CHECK(syscall(-1) == -1 && errno == ENOSYS);
    CHECK(getsid(0) > 0 && getpgrp() > 0 && getpgid(0) == getpgrp() && getppid() > 0);
    return finish();
}

/* measure REPORT N CMD...: runs CMD N times and appends a line for each to REPORT:
 *   wall ns, user+system us, peak resident kB, wait status
 * Small on purpose: a child's peak memory starts with that of the process it was spawned from. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static long long us(struct timeval t) { return t.tv_sec * 1000000ll + t.tv_usec; }

int main(int argc, char **argv) {
    if (argc < 4) return 125;
    int report = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    for (int i = atoi(argv[2]); i > 0; i--) {
        struct rusage u;
        pid_t pid;
        int status;
        long long begin = now_ns();
        if (posix_spawnp(&pid, argv[3], NULL, NULL, argv + 3, environ)) return 127;
        wait4(pid, &status, 0, &u);
        dprintf(report, "%lld %lld %ld %d\n", now_ns() - begin, us(u.ru_utime) + us(u.ru_stime), u.ru_maxrss, status);
    }
    return 0;
}

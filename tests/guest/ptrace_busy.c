// A tracer writes to /proc/PID/mem while its other threads compute: each of them counts without a lock, but one at a time.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITES 300

static volatile long word;
static long turns;
static volatile int done;

static void *compute(void *arg) {
    while (!done) __atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED);
    return arg;
}

int main(void) {
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(word == WRITES);
    }
    waitpid(pid, NULL, 0);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, compute, NULL);
    while (!__atomic_load_n(&turns, __ATOMIC_RELAXED)) sched_yield(); /* somebody has begun */
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDWR), status;
    for (long i = 1; i <= WRITES; i++)
        if (pwrite(fd, &i, sizeof i, (off_t)&word) != sizeof i) printf("write %ld failed\n", i);
    done = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    ptrace(PTRACE_CONT, pid, 0, 0);
    waitpid(pid, &status, 0);
    printf("exited %d with %d\n", WIFEXITED(status), WEXITSTATUS(status));
    fprintf(stderr, "%ld\n", turns); /* another one each time it runs, but not each time it is replayed */
    return 0;
}

// A sibling attaches to all threads of a process that runs, as a debugger does: it lists them in /proc, stops and leaves each of them,
// several times. There are as many as the program made, and what they do goes on undisturbed.
#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 4
#define THREADS 5

static struct { // shared by all processes
    int n_ready, done;
    int sleeper; // futex
} * common;
static int ends[2];
static int failures;

static void expect(const char *what, long got, long wanted) {
    if (got == wanted) return;
    printf("%s: %ld, not %ld\n", what, got, wanted);
    failures++;
}

static void nap(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0) {}
}

// ---- the process that is attached to ----

static void ready(void) { __atomic_add_fetch(&common->n_ready, 1, __ATOMIC_SEQ_CST); }
static int is_done(void) { return __atomic_load_n(&common->done, __ATOMIC_SEQ_CST); }

static void *compute(void *arg) {
    ready();
    volatile long sum = 0;
    while (!is_done())
        for (int i = 0; i < 1000; i++) sum += i;
    return arg;
}

static void *sleeps(void *arg) {
    ready();
    struct timespec t = {0, 1000000};
    while (!is_done()) expect("nanosleep", nanosleep(&t, NULL), 0);
    return arg;
}

static void *waits(void *arg) {
    ready();
    while (!__atomic_load_n(&common->sleeper, __ATOMIC_SEQ_CST))
        if (syscall(SYS_futex, &common->sleeper, FUTEX_WAIT, 0, NULL) != 0 && errno != EAGAIN)
            expect("futex", errno, 0);
    return arg;
}

static void *reads(void *arg) {
    char c = 0;
    ready();
    expect("read", read(ends[0], &c, 1), 1);
    expect("what was read", c, 'x');
    return arg;
}

static int subject(void) {
    void *(*const what[])(void *) = {compute, sleeps, waits, reads};
    pthread_t threads[THREADS - 1];
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    for (int i = 0; i < THREADS - 1; i++) pthread_create(&threads[i], NULL, what[i], NULL);
    for (int i = 0; i < THREADS - 1; i++) pthread_join(threads[i], NULL);
    fflush(stdout);
    return failures != 0;
}

// ---- who attaches ----

static int list(int pid, int *tids) {
    char path[40];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.' && n < 2 * THREADS) tids[n++] = atoi(e->d_name);
    if (dir) closedir(dir);
    return n;
}

static long links(int pid) {
    char path[40];
    struct stat st = {0};
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    stat(path, &st);
    return (long)st.st_nlink;
}

// The number of threads, as /proc/PID/status and /proc/PID/stat say.
static long from_status(int pid) {
    char path[40], line[256];
    long n = -1;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "Threads: %ld", &n);
    if (f) fclose(f);
    return n;
}

static long from_stat(int pid) {
    char path[40], line[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    char *at = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    if (f) fclose(f);
    for (int field = 2; at && field < 20; field++) at = strchr(at + 1, ' ');
    return at ? atol(at) : -1;
}

static void stop(int tid, int seize) {
    int status = 0;
    if (seize) {
        expect("seize", ptrace(PTRACE_SEIZE, tid, 0, 0), 0);
        expect("interrupt", ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
    } else {
        expect("attach", ptrace(PTRACE_ATTACH, tid, 0, 0), 0);
    }
    expect("wait", waitpid(tid, &status, __WALL), tid);
    expect("status", status, seize ? PTRACE_EVENT_STOP << 16 | SIGTRAP << 8 | 0x7f : SIGSTOP << 8 | 0x7f);
}

static void visit(int pid, int seize) {
    int tids[2 * THREADS];
    int n = list(pid, tids);
    expect("threads listed", n, THREADS);
    expect("links", links(pid), 2 + THREADS);
    expect("threads in status", from_status(pid), THREADS);
    expect("threads in stat", from_stat(pid), THREADS);
    for (int i = 0; i < n; i++) stop(tids[i], seize);
    expect("threads in status of a tracee", from_status(pid), THREADS);
    for (int i = 0; i < n; i++) expect("detach", ptrace(PTRACE_DETACH, tids[i], 0, 0), 0);
}

static int tracer(int pid) {
    alarm(40);
    for (int i = 0; i < ROUNDS; i++) {
        visit(pid, i % 2);
        nap(i == 1 ? 1200 : 10); // it is old enough for checkpoints then
    }
    fflush(stdout);
    return failures != 0;
}

int main(void) {
    int status;
    common = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pipe(ends) != 0) return 1;
    pid_t pid = fork();
    if (pid == 0) exit(subject());
    while (__atomic_load_n(&common->n_ready, __ATOMIC_SEQ_CST) < THREADS - 1) nap(1);
    pid_t other = fork();
    if (other == 0) exit(tracer(pid));
    waitpid(other, &status, 0);
    printf("tracer: %x\n", status);
    __atomic_store_n(&common->done, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&common->sleeper, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &common->sleeper, FUTEX_WAKE, 1);
    if (write(ends[1], "x", 1) != 1) return 1;
    waitpid(pid, &status, 0);
    printf("subject: %x\n", status);
    return 0;
}

/* A child that has a file mapped privately while its parent changes it, for as long as the second argument says, in seconds; the
 * first one says how: shared (through a mapping) or calls (written, cut off, mapped by nobody else). The child looks at pages, writes
 * to some, drops them now and then, maps others; the parent has private mappings, too. The child crashes in the end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define PAGES 40ul
#define WORDS (PAGE / sizeof(long))

static char *own;
static sigjmp_buf out;

static void on_bus(int sig) {
    (void)sig;
    siglongjmp(out, 1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static volatile long *map(const char *name, int mode, int flags) {
    int fd = open(name, mode);
    void *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (fd < 0 || p == MAP_FAILED) abort();
    close(fd);
    return p;
}

static void compute(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) own[i * 64 % (1 << 20)] += (char)i;
}

/* A page that is not there counts, too. */
static long look(volatile long *p) { return sigsetjmp(out, 1) ? 7 : *p; }

static void child(const char *name, volatile long *mine, double end) {
    for (unsigned long i = 0; now() < end; i++) {
        own[i % 1000] += (char)look(&mine[i % 30 * WORDS]);
        if (i % 8 == 0 && sigsetjmp(out, 1) == 0) mine[(i / 8 % 10) * WORDS + i % WORDS] = (long)i;
        if (i % 16 == 5) madvise((void *)&mine[i / 16 % 20 * WORDS], 3 * PAGE, MADV_DONTNEED);
        if (i % 64 == 63) {
            munmap((void *)mine, PAGES * PAGE);
            mine = map(name, O_RDONLY, MAP_PRIVATE);
        }
        compute(5000);
    }
    *(volatile int *)16 = 1;
}

int main(int argc, char **argv) {
    char name[] = "borrowers-XXXXXX", bytes[3 * PAGE] = {0};
    int fd = mkstemp(name), calls = argc > 1 && strcmp(argv[1], "calls") == 0;
    double end = now() + (argc > 2 ? atof(argv[2]) : 1);
    if (fd < 0 || ftruncate(fd, PAGES * PAGE)) abort();
    signal(SIGBUS, on_bus);
    own = malloc(1 << 20);
    memset(own, 1, 1 << 20);
    volatile long *file = calls ? NULL : map(name, O_RDWR, MAP_SHARED), *mine = map(name, O_RDONLY, MAP_PRIVATE);
    mine[3] = 5;
    pid_t pid = fork();
    if (pid == 0) child(name, mine, end);
    for (unsigned long i = 0; waitpid(pid, NULL, WNOHANG) == 0; i++) {
        bytes[i % sizeof bytes]++;
        if (file) file[i % PAGES * WORDS + i % 7] = (long)i;
        if (calls && pwrite(fd, bytes, sizeof bytes, (off_t)(i % (PAGES - 3) * PAGE)) < 0) abort();
        if (calls && i % 100 == 99 && (ftruncate(fd, 9 * PAGE + 50) || ftruncate(fd, PAGES * PAGE))) abort();
        if (i % 10 == 0) own[3] += (char)look(&mine[i % PAGES * WORDS]);
        compute(2000);
    }
    unlink(name);
    puts("done");
    return 0;
}

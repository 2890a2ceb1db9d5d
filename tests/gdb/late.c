/* A process that is old enough to have checkpoints, with threads that have names and memory that its children do not get; it ends
 * in a crash. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int *kept, *wiped, status;
static volatile int fd = -1;

static void *wait_for_ever(void *name) {
    prctl(PR_SET_NAME, name);
    for (;;) pause();
}

static volatile int *memory(int advice) {
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED || madvise(p, 4096, advice) ? NULL : p;
}

static void in_child(void) { _exit(write(fd, (void *)kept, 4) < 0 ? wiped[0] + 3 : 1); }

int main(void) {
    pthread_t a, b;
    prctl(PR_SET_NAME, "chief");
    kept = memory(MADV_DONTFORK);
    wiped = memory(MADV_WIPEONFORK);
    kept[0] = wiped[0] = 7;
    pthread_create(&a, NULL, wait_for_ever, "first");
    pthread_create(&b, NULL, wait_for_ever, "second");
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec - start.tv_sec < 2);
    int ends[2];
    if (pipe(ends)) return 1;
    fd = ends[1];
    if (fork() == 0) in_child();
    wait((int *)&status);
    *(volatile int *)8 = WEXITSTATUS(status);
}

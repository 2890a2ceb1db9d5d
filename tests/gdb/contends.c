/* Two processes that meet in one page all the time, so that it becomes nobody's: each notes what it saw there last. The child crashes. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 3000

struct shared {
    volatile long counter, place[2];
};

struct shared *shared;
volatile long seen, noted; /* of each process */
useconds_t nap;            /* in each round */

void saw(void) { noted = seen; }

static void meet(int me, long round) {
    seen = __atomic_add_fetch(&shared->counter, 1, __ATOMIC_SEQ_CST);
    saw();
    shared->place[me] = round;
    for (volatile int i = 0; i < 1000; i++) continue;
    sched_yield();
    if (nap) usleep(nap);
}

static void crash(void) { *(volatile long *)16 = seen; }

int main(int argc, char **argv) {
    int fd = argc > 1 && strcmp(argv[1], "memfd") == 0 ? memfd_create("contended", 0) : -1;
    if (fd >= 0 && ftruncate(fd, 4096)) abort();
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) abort();
    nap = argc > 2 ? (useconds_t)atoi(argv[2]) : 0;
    pid_t child = fork();
    int me = child == 0;
    for (long i = 1; i <= ROUNDS; i++) meet(me, i);
    if (me) crash();
    int status;
    waitpid(child, &status, 0);
    return !WIFSIGNALED(status);
}

/* Processes that share memory: a counter that they take turns to count up, in memory that was inherited, in a memfd,
 * or in a file that is written to by calls, too; two places each, so that who looks sees what the other one has done. */
#define _GNU_SOURCE
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 4

struct shared {
    sem_t turn[2];
    volatile int counter, last;
    char pad[4096 - 2 * sizeof(sem_t) - 2 * sizeof(int)];
    volatile int other_page;
};

struct shared *shared;
volatile int own; /* of each process */
int fd = -1, crashes;

int peek_other(int more) { return shared->other_page + more; }

static void crash(void) { *(volatile int *)16 = own; }

static void in_turn(int me) {
    shared->counter++;
    shared->last = me;
    own = shared->counter;
    if (crashes && me == 1 && own == 4) crash();
    if (fd >= 0 && me == 1) {
        int n = own * 10;
        if (pwrite(fd, &n, sizeof n, 4096) != sizeof n) abort();
    } else {
        shared->other_page += me + 1;
    }
}

static void run(int me) {
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&shared->turn[me]);
        in_turn(me);
        sem_post(&shared->turn[!me]);
    }
}

int main(int argc, char **argv) {
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    if (argc > 1 && strcmp(argv[1], "inherited") != 0) {
        fd = memfd_create("shares", 0);
        if (ftruncate(fd, sizeof *shared)) abort();
        flags = MAP_SHARED;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (shared == MAP_FAILED) abort();
    crashes = argc > 1 && strcmp(argv[1], "crash") == 0;
    if (argc <= 1 || strcmp(argv[1], "calls") != 0) fd = -1;
    sem_init(&shared->turn[0], 1, 1);
    sem_init(&shared->turn[1], 1, 0);
    if (fork() == 0) {
        run(1);
        _exit(own);
    }
    if (!crashes) run(0);
    for (int i = 0; crashes && i < 2; i++) {
        sem_wait(&shared->turn[0]);
        in_turn(0);
        sem_post(&shared->turn[1]);
    }
    int status;
    wait(&status);
    printf("counter %d, child %d, other page %d\n", shared->counter, WEXITSTATUS(status), shared->other_page);
    return 0;
}

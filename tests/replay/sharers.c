/* Two processes that hand pages of shared memory to each other for as long as the second argument says, in seconds; the first one
 * says what they share: inherited, memfd, file, segment (System V) or late (memory that becomes shared when the child is made). Each
 * page has another fate: counted up in turn, by both at any time, written by one and read by the other now and then, never touched
 * again by the child, unmapped and mapped again, written by calls. The child crashes in the end, the parent exits. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define PAGES 40ul
#define LENGTH (PAGES * PAGE)
#define WORDS (PAGE / sizeof(long))

enum { TURNS, COUNTED, BOTH, NEWS, INHERITED, AGAIN = 8, CALLS = 12, LAZY = 16 };

static long *memory; /* PAGES pages */
static char *own;    /* of this process */
static int fd = -1;

static volatile long *at(unsigned page, unsigned word) { return memory + page * WORDS + word; }
static sem_t *turn(int who) { return (sem_t *)memory + who; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void share(const char *what) {
    int flags = MAP_SHARED;
    if (strcmp(what, "segment") == 0) {
        int id = shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0600);
        memory = shmat(id, NULL, 0);
        shmctl(id, IPC_RMID, NULL);
        return;
    }
    if (strcmp(what, "memfd") == 0) fd = memfd_create("sharers", 0);
    if (strcmp(what, "file") == 0) {
        char name[] = "sharers-XXXXXX";
        fd = mkstemp(name);
        unlink(name);
    }
    if (fd < 0) flags |= MAP_ANONYMOUS;
    if (fd >= 0 && ftruncate(fd, (off_t)LENGTH)) abort();
    memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, flags, fd, 0);
}

static void map_again(void) {
    char *start = (char *)memory + AGAIN * PAGE;
    if (fd < 0) return;
    if (munmap(start, 2 * PAGE)) abort();
    void *got = mmap(start, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)(AGAIN * PAGE));
    if (got != start) abort();
}

static void compute(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) own[i * 64 % (1 << 20)] += (char)i;
}

static void round_of(int me, unsigned long i) {
    sem_wait(turn(me));
    *at(COUNTED, (unsigned)i % WORDS) += me + 1;
    *at(COUNTED + LAZY + i % 8, (unsigned)i % WORDS) = (long)i;
    sem_post(turn(!me));
    __atomic_add_fetch(at(BOTH, 3), 1, __ATOMIC_SEQ_CST);
    if (me == 0) *at(NEWS, (unsigned)i % 100) = (long)i;
    if (me == 1 && i % 16 == 0) own[5] += (char)*at(NEWS, 0);
    *at(AGAIN + (unsigned)me, (unsigned)i % 50) += 3;
    if (i % 32 == 31) map_again();
    long word = (long)i;
    if (fd >= 0 && pwrite(fd, &word, sizeof word, (off_t)(CALLS * PAGE + i % WORDS * sizeof word)) != sizeof word)
        abort();
    compute(20000);
}

static void *other_thread(void *arg) { /* faults on shared pages beside the others */
    for (;;) {
        ++*at(LAZY - 1, 7);
        usleep(3000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    double seconds = argc > 2 ? atof(argv[2]) : 1, start = now();
    share(argc > 1 ? argv[1] : "inherited");
    if (memory == (void *)-1) abort();
    own = malloc(1 << 20);
    memset(own, 1, 1 << 20);
    for (unsigned i = 0; i < 4; i++) strcpy((char *)at(INHERITED + i, 10), "from the parent");
    sem_init(turn(0), 1, 1);
    sem_init(turn(1), 1, 0);
    if (argc > 1 && strcmp(argv[1], "late") == 0)
        while (now() - start < seconds / 2) compute(20000);
    pid_t child = fork();
    pthread_t thread;
    if (argc > 3) pthread_create(&thread, NULL, other_thread, NULL);
    unsigned long i = 0;
    for (; child ? *at(TURNS, 100) == 0 : now() - start < seconds; i++) {
        if (child == 0 && i % 64 == 63) *at(BOTH, 100) = (long)i;
        round_of(child == 0, i);
    }
    if (child == 0) {
        *at(TURNS, 100) = 1;
        sem_post(turn(0));
        *(volatile int *)16 = (int)i;
    }
    int status;
    wait(&status);
    printf("signal %d, %s\n", WTERMSIG(status), (char *)at(INHERITED, 10));
    return 0;
}

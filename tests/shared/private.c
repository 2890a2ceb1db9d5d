/* Private mappings of files that processes share: what they show where the program has not written depends on when it looks. */
#include "shared.h"
#include <setjmp.h>

#define SIZE (64 * 4096)

static volatile uint64_t *map(int fd, int prot, int flags) {
    void *p = mmap(NULL, SIZE, prot, flags, fd, 0);
    if (p == MAP_FAILED) abort();
    return p;
}

static int make_file(void) {
    char name[] = "shared.private.XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0 || ftruncate(fd, SIZE)) abort();
    unlink(name);
    return fd;
}

static void tell(int fd) {
    if (write(fd, "x", 1) != 1) abort();
}
static void await(int fd) {
    char c;
    if (read(fd, &c, 1) != 1) abort();
}

/* What was populated, or written, is the child's own; its parent then changes the file. */
static void in_order(int flags) {
    int fd = make_file(), to[2], back[2], status;
    volatile uint64_t *file = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (pipe(to) || pipe(back)) abort();
    file[0] = 1, file[512] = 2;
    fflush(stdout);
    if (fork() == 0) {
        volatile uint64_t *mine = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags);
        if (mine[0] != 1) abort();
        mine[0] = 10;
        tell(to[1]);
        await(back[0]);
        if (mine[0] != 10 || (flags && mine[512] != 2)) abort();
        if (write(to[1], (const void *)&mine[5 * 512], 8) != 8) abort(); /* untouched so far: a call is first */
        _exit(0);
    }
    await(to[0]);
    for (int i = 0; i < 64; i++) file[i * 512] = 100 + (uint64_t)i;
    tell(back[1]);
    uint64_t word;
    if (read(to[0], &word, 8) != 8) abort();
    wait(&status);
    printf("in order: %lu, %lu, %d\n", word, file[0], status);
    close(fd);
}

/* The parent writes all the time. */
static void racing(void) {
    int fd = make_file();
    volatile uint64_t *file = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED), *go = share(4096);
    fflush(stdout);
    if (fork() == 0) {
        uint64_t sum = 0;
        for (int i = 0; i < 20; i++) {
            volatile uint64_t *mine = map(fd, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE);
            for (int k = 0; k < 64; k++) sum = mix(sum, mine[k * 512]);
            if (i % 2 == 0) mine[7] = 1, sum = mix(sum, mine[0]);
            munmap((void *)mine, SIZE);
        }
        printf("racing: %016lx\n", sum);
        fflush(stdout);
        *go = 1;
        _exit(0);
    }
    uint64_t n = 0;
    for (; !*go && n < 400000000; n++) file[n % 64 * 512] = n;
    wait(NULL);
    printf("at the end: %lu\n", n);
}

/* Mapped before a fork, and while this process has all of the file: the others' changes come later. */
static void inherited(void) {
    int fd = make_file(), status;
    volatile uint64_t *mine = map(fd, PROT_READ, MAP_PRIVATE);
    volatile uint64_t *file = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    file[0] = 1;
    if (mine[0] != 1) abort();
    file[0] = 2;
    if (mine[0] != 2) abort(); /* nobody has written to it here */
    fflush(stdout);
    if (fork() == 0) {
        file[0] = 3;
        for (uint64_t i = 0; i < 2000000; i++) file[512] = i;
        printf("inherited: %lu\n", mine[1024]);
        fflush(stdout);
        _exit(0);
    }
    uint64_t sum = 0;
    for (int i = 0; i < 1000; i++) sum = mix(sum, mine[0] + mine[512]);
    wait(&status);
    printf("inherited: %016lx, %lu %d\n", sum, file[0], status);
    madvise((void *)mine, SIZE, MADV_DONTNEED);
    printf("anew: %lu %lu\n", mine[0], mine[512]);
}

/* Moved, made writable, and looked at behind its end, while another process writes. */
static sigjmp_buf out;
static void on_bus(int sig) {
    (void)sig;
    siglongjmp(out, 1);
}
static void moved(void) {
    int fd = make_file(), to[2];
    volatile uint64_t *file = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED), *go = share(4096);
    if (pipe(to)) abort();
    signal(SIGBUS, on_bus);
    fflush(stdout);
    if (fork() == 0) {
        volatile uint64_t *mine = map(fd, PROT_READ, MAP_PRIVATE);
        uint64_t sum = mine[512];
        mine = mremap((void *)mine, SIZE, SIZE + 4096, MREMAP_MAYMOVE);
        if (mine == MAP_FAILED || mprotect((void *)mine, SIZE, PROT_READ | PROT_WRITE)) abort();
        for (int k = 0; k < 64; k++) sum = mix(sum, ++mine[k * 512]);
        if (sigsetjmp(out, 1) == 0) sum = mine[SIZE / 8];
        if (write(to[1], (const void *)&mine[512], 8) != 8 || read(to[0], (void *)&mine[512], 8) != 8) abort();
        printf("moved: %016lx\n", mix(sum, mine[512]));
        fflush(stdout);
        *go = 1;
        _exit(0);
    }
    for (uint64_t n = 0; !*go && n < 400000000; n++) file[n % 64 * 512] = n;
    int status;
    wait(&status);
    if (status) abort();
}

/* Calls that touch whole ranges, which are another process's. */
static void locked(void) {
    int fd = make_file(), status;
    volatile uint64_t *file = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    for (uint64_t i = 0; i < 64; i++) file[i * 512] = i;
    fflush(stdout);
    if (fork() == 0) {
        volatile uint64_t *mine = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
        int failed = mlock((void *)mine, 8192) + mlock((void *)file, 8192);
        failed += madvise((void *)&mine[1024], SIZE - 8192, MADV_POPULATE_WRITE);
        printf("locked: %d, %lu %lu\n", failed, mine[512], mine[63 * 512]);
        fflush(stdout);
        _exit(failed != 0);
    }
    wait(&status);
    if (status) abort();
}

/* Populated by one process that is alone with its file. */
static void alone(void) {
    int fd = make_file();
    volatile uint64_t *file = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    file[0] = 1;
    volatile uint64_t *mine = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_POPULATE);
    volatile uint64_t *lock = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    mlock((void *)lock, 4096);
    file[0] = 2;
    printf("alone: %lu %lu\n", mine[0], lock[0]);
}

int main(void) {
    in_order(0);
    in_order(MAP_POPULATE);
    racing();
    inherited();
    moved();
    locked();
    alone();
    return 0;
}

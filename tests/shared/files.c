/* Files that processes share: memfds, /dev/zero, mappings that become writable later, write() by one and loads by another,
 * files that are cut off and grow again. The racing ones print how it went. */
#include "shared.h"
#include <setjmp.h>
#include <sys/stat.h>

#define ROUNDS 300000

/* Adds without a lock: updates get lost. */
static void race(const char *what, volatile uint64_t *word) {
    if (fork() == 0) {
        for (int i = 0; i < ROUNDS; i++) *word = mix(*word, 1);
        _exit(0);
    }
    for (int i = 0; i < ROUNDS; i++) *word = mix(*word, 2);
    wait(NULL);
    printf("%s: %016lx\n", what, *word);
}

static void *map(int fd, int prot) {
    void *p = mmap(NULL, 8192, prot, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) abort();
    return p;
}

static int make_file(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, 8192)) abort();
    unlink(name);
    return fd;
}

/* One process writes to the file, the other one looks at its mapping: no lock, any mixture may be seen. */
static void written_by_calls(void) {
    int fd = make_file("shared.calls");
    volatile uint64_t *view = map(fd, PROT_READ), *go = share(4096);
    if (fork() == 0) {
        *go = 1;
        for (uint64_t i = 1; i <= 300; i++)
            if (pwrite(fd, &i, 8, 4096) != 8) abort();
        *go = 2;
        _exit(0);
    }
    uint64_t seen = 0, sum = 0;
    while (*go != 2) sum = mix(sum, view[512]), seen++;
    wait(NULL);
    printf("pwrite: last %lu, %lu looks, %016lx\n", view[512], seen, sum);
}

static sigjmp_buf out;
static void on_bus(int sig) {
    (void)sig;
    siglongjmp(out, 1);
}
static int peek(volatile char *p) { return sigsetjmp(out, 1) ? -1 : *p; }

/* The child cuts the file off and lets it grow; the parent finds nothing, then zeros. */
static void cut_off(void) {
    int fd = make_file("shared.cut"), to[2], back[2];
    char *p = map(fd, PROT_READ | PROT_WRITE), c;
    if (pipe(to) || pipe(back)) abort();
    signal(SIGBUS, on_bus);
    memset(p, 7, 8192);
    if (fork() == 0) {
        if (read(to[0], &c, 1) != 1 || ftruncate(fd, 4096) || write(back[1], "a", 1) != 1) abort();
        if (read(to[0], &c, 1) != 1 || ftruncate(fd, 8192) || write(back[1], "b", 1) != 1) abort();
        if (read(to[0], &c, 1) != 1 || pwrite(fd, "\5", 1, 4096) != 1 || write(back[1], "c", 1) != 1) abort();
        _exit(0);
    }
    printf("cut off: %d %d", peek(p), peek(p + 4096));
    for (int i = 0; i < 3; i++) {
        if (write(to[1], "x", 1) != 1 || read(back[0], &c, 1) != 1) abort();
        printf(", %d %d", peek(p), peek(p + 4096));
    }
    wait(NULL);
    printf("\n");
}

int main(void) {
    int fd = memfd_create("shared", 0);
    if (ftruncate(fd, 8192)) abort();
    race("memfd", map(fd, PROT_READ | PROT_WRITE));

    int zero = open("/dev/zero", O_RDWR);
    volatile uint64_t *a = map(zero, PROT_READ | PROT_WRITE), *b = map(zero, PROT_READ | PROT_WRITE);
    b[0] = 5;
    race("/dev/zero", a);
    printf("another /dev/zero: %lu\n", b[0]);

    fd = make_file("shared.later");
    void *later = map(fd, PROT_READ);
    if (mprotect(later, 8192, PROT_READ | PROT_WRITE)) abort();
    race("mprotect", later);

    written_by_calls();
    cut_off();
    for (int i = 0; i < 5; i++) { /* the same inode again, most likely */
        fd = make_file("shared.again");
        uint64_t *p = map(fd, PROT_READ | PROT_WRITE);
        printf("%lu ", p[0]);
        p[0] = 1;
        munmap(p, 8192), close(fd);
    }
    printf("\n");
    return 0;
}

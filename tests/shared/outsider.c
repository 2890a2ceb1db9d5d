/* A word in a small file that somebody else sets, and that this program only reads, in every way. Who sets it may be outside of the
 * recording: cli/record_outsider.sh runs this program beside it. Alone, its children do it.
 *   outsider [FILE [WHICH]]    waits for the bytes of FILE, one after the other; or sets one */
#include "shared.h"
#include <sched.h>

#define WORDS 6
static const char *page; /* that nobody maps for writing */

static int open_file(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 64)) abort();
    return fd;
}

static int set(const char *path, int which) { return pwrite(open_file(path), "\1", 1, which) != 1; }

static char peek(int which) { return ((const volatile char *)page)[which]; }

/* All at once, by an instruction that takes 16 bytes. */
static char peek_wide(int which) {
    char all[16];
    __asm__ volatile("movups (%1), %%xmm0; movups %%xmm0, %0" : "=m"(all) : "r"(page) : "xmm0", "memory");
    return all[which];
}

/* The kernel reads it. */
static char peek_call(int which) {
    static int ends[2];
    char all[64];
    if (!ends[1] && pipe(ends)) abort();
    if (write(ends[1], page, 64) != 64 || read(ends[0], all, 64) != 64) abort();
    return all[which];
}

static void await(int which, char (*get)(int), void (*meanwhile)(void)) {
    long n = 0;
    printf("waits for %d\n", which);
    fflush(stdout);
    for (; !get(which); n++) meanwhile();
    printf("%d is there, looked %ld times\n", which, n);
    fflush(stdout);
}

static void yield(void) { sched_yield(); }
static void nap(void) { usleep(1000); }
static void nothing(void) {}

static void set_later(const char *path) {
    if (fork()) return;
    for (int i = 0; i < WORDS; i++) {
        usleep(20000);
        set(path, i);
    }
    _exit(0);
}

static void in_child(int number) { await(4 + number, peek, yield); }

int main(int argc, char **argv) {
    char own[64];
    snprintf(own, sizeof own, "outsider-%d", getpid());
    const char *path = argc > 1 ? argv[1] : own;
    if (argc > 2) return set(path, atoi(argv[2]));
    page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, open_file(path), 0);
    if (page == MAP_FAILED) abort();
    if (argc < 2) set_later(path);
    await(0, peek, yield);
    await(1, peek, nothing);
    await(2, peek_wide, nap);
    await(3, peek_call, nap);
    in_children(2, in_child);
    unlink(path);
    return 0;
}

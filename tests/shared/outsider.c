/* A word in a small file that somebody else sets, and that this program only reads, in every way. Who sets it may be outside of the
 * recording: cli/record_outsider.sh runs this program beside it. Alone, its children do it.
 *   outsider [FILE [WHICH]]    waits for the bytes of FILE, one after the other; or sets one
 *   outsider FILE count        counts its first bytes up until it is gone
 *   outsider FILE follow N     looks at them so often, and until they have changed twice, in all the ways that need the page as a whole */
#include "shared.h"
#include <sched.h>
#include <sys/stat.h>

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

static int count(const char *path) {
    uint64_t n[2] = {0};
    int fd = open_file(path);
    for (struct stat st; fstat(fd, &st) == 0 && st.st_nlink; n[0]++, n[1]++)
        if (pwrite(fd, n, sizeof n, 0) != sizeof n) abort();
    return 0;
}

/* What is seen has to be seen again, and while nothing is done in between, in the order in which it was. */
static int follow(const char *path, long rounds) {
    uint64_t sum = 0, changes = 0, last = 0;
    for (long i = 0; i < rounds || (changes < 2 && i < 10000 * rounds); i++) { /* who counts may not get the processor at once */
        uint64_t now = 0;
        for (int k = 0; k < 8; k++) now = now << 8 | (uint8_t)(i % 16 ? peek_wide(7 - k) : peek_call(7 - k));
        changes += now != last;
        last = now;
        sum = (sum << 7 | sum >> 57) ^ now;
    }
    printf("%lx, %ld changes\n", sum, (long)changes);
    unlink(path);
    return changes < 2;
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
    if (argc == 3) return strcmp(argv[2], "count") ? set(path, atoi(argv[2])) : count(path);
    page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, open_file(path), 0);
    if (page == MAP_FAILED) abort();
    if (argc == 4) return follow(path, atol(argv[3]));
    if (argc < 2) set_later(path);
    await(0, peek, yield);
    await(1, peek, nothing);
    await(2, peek_wide, nap);
    await(3, peek_call, nap);
    in_children(2, in_child);
    unlink(path);
    return 0;
}

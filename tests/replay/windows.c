/* Files of which memory shows a part, only to be read as a rule, and that calls change: inside of the part and outside, cut off and
 * grown again. A child does the same to the same file. Later the part is made writable, and another part is mapped.
 * usage: windows SECONDS [large]      large: the file is as large as makes checkpoints too dear that have all of it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define WINDOW (8 * PAGE)

static int file;
static size_t pages;
static unsigned seed = 1;

static unsigned next(unsigned n) { return (seed = seed * 1103515245 + 12345) / 65536 % n; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned char *map(size_t page, int prot) {
    unsigned char *at = mmap(NULL, WINDOW, prot, MAP_SHARED, file, (off_t)(page * PAGE));
    if (at == MAP_FAILED) abort();
    return at;
}

static void change(void) {
    static char bytes[3 * PAGE];
    size_t n = 1 + next(next(4) ? 200 : sizeof bytes - 1),
           at = next(next(2) ? WINDOW / PAGE : pages) * PAGE + next(PAGE);
    memset(bytes, (int)next(256), n);
    struct iovec two[2] = {{bytes, n / 2}, {bytes + n / 2, n - n / 2}};
    if (next(3) ? pwrite(file, bytes, n, (off_t)at) < 0 : pwritev(file, two, 2, (off_t)at) < 0) abort();
}

static void resize(void) {
    if (ftruncate(file, (off_t)((pages - next(6)) * PAGE - next(2) * 100)) < 0) abort();
    if (ftruncate(file, (off_t)(pages * PAGE)) < 0) abort();
}

static unsigned sum(const unsigned char *window) {
    unsigned s = 0;
    for (size_t i = 0; i < WINDOW; i += 64) s = s * 31 + window[i];
    return s;
}

static unsigned work(double seconds, unsigned who) {
    unsigned char *window = map(0, PROT_READ), *other = NULL;
    unsigned s = 0;
    seed += who;
    for (double begin = now(), at; (at = now() - begin) < seconds;) {
        for (int i = 0; i < 20; i++) change();
        if (!who && !next(40)) resize();
        s += sum(window);
        if (!next(8)) {
            other = other ? munmap(other, WINDOW), NULL : map(pages / 2, next(2) ? PROT_READ : PROT_READ | PROT_WRITE);
            if (other) s += sum(other);
        }
        if (at > seconds * 0.7 && !mprotect(window, WINDOW, PROT_READ | PROT_WRITE)) window[next(WINDOW)]++;
    }
    return s;
}

int main(int argc, char **argv) {
    char name[] = "windows-XXXXXX";
    double seconds = argc > 1 ? atof(argv[1]) : 0.2;
    pages = argc > 2 ? (300ul << 20) / PAGE : 64;
    file = mkstemp(name);
    if (file < 0 || unlink(name) || ftruncate(file, (off_t)(pages * PAGE))) abort();
    for (int i = 0; i < 30; i++) change();
    unsigned s = work(seconds, 0);
    pid_t child = fork();
    if (child) pages += 8;
    s += work(seconds, child ? 2 : 1);
    if (!child) _exit(0);
    waitpid(child, NULL, 0);
    printf("%s\n", s ? "done" : "nothing");
    return 0;
}

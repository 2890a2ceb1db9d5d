/* Files of one page that are opened for writing and mapped for reading, which processes outside of the sphere might write to: the mapping
 * grows with the file, or becomes writable, right after a call has needed the page as a whole. */
#include "shared.h"

#define PAGES 9

static char page[4096];

static int fill(int fd, int number, char with) {
    memset(page, with, sizeof page);
    return pwrite(fd, page, sizeof page, number * 4096l) == sizeof page;
}

static int make(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || !fill(fd, 0, 1)) abort();
    return fd;
}

static volatile char *map(int fd) {
    volatile char *m = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (m == MAP_FAILED) abort();
    return m;
}

/* As SQLite does it. */
static int grows(const char *name) {
    int fd = make(name), wrong = 0;
    volatile char *m = map(fd);
    if (!fill(fd, 0, 2) || m[0] != 2 || ftruncate(fd, PAGES * 4096)) return 1;
    m = mremap((void *)m, 4096, PAGES * 4096, MREMAP_MAYMOVE);
    if (m == MAP_FAILED) return 1;
    for (int i = 0; i < PAGES; i++)
        if (!fill(fd, i, (char)(10 + i))) return 1;
    for (int i = 0; i < PAGES; i++) wrong |= m[i * 4096] != 10 + i;
    usleep(2000);
    for (int i = 0; i < PAGES; i++) wrong |= m[i * 4096 + 1] != 10 + i;
    unlink(name);
    return wrong;
}

static int becomes_writable(const char *name) {
    int fd = make(name), p[2];
    volatile char *m = map(fd);
    if (pipe(p) || write(p[1], (const void *)m, 4096) != 4096) return 1; /* as a whole */
    if (mprotect((void *)m, 4096, PROT_READ | PROT_WRITE)) return 1;
    m[7] = 3;
    if (pread(fd, page, sizeof page, 0) != sizeof page || page[7] != 3 || page[8] != 1) return 1;
    fflush(stdout);
    if (fork() == 0) {
        m[8] = 4;
        _exit(m[7] != 3);
    }
    int status;
    if (wait(&status) < 0 || status || m[8] != 4) return 1;
    unlink(name);
    return 0;
}

int main(void) {
    int grown = grows("shared.grows"), written = becomes_writable("shared.written");
    printf("%d %d\n", grown, written);
    return grown || written;
}

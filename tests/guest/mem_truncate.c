/* Pages of a private mapping that the program has written go, too, when their file is cut off in front of them. */
#define _GNU_SOURCE
#include "guest.h"

#include <fcntl.h>
#include <sys/mman.h>

#define PAGES 4

static void say(const char *what, const volatile char *p, int n) {
    printf("%s:", what);
    for (int i = 0; i < n; i++) printf(" %d", p[i * 4096 + 7]);
    printf("\n");
}

static void cut_and_grow(const char *what, int fd, off_t size) {
    CHECK(ftruncate(fd, PAGES * 4096) == 0);
    for (int i = 0; i < PAGES; i++) CHECK(pwrite(fd, "f", 1, i * 4096 + 7) == 1);
    char *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(p != MAP_FAILED);
    for (int i = 1; i < PAGES; i++) p[i * 4096 + 7] = 'm';
    say(what, p, PAGES);
    CHECK(ftruncate(fd, size) == 0);
    say("cut", p, (size + 4095) / 4096);
    CHECK(ftruncate(fd, PAGES * 4096) == 0);
    say("grown", p, PAGES);
    p[3 * 4096 + 7] = 'n';
    CHECK(pwrite(fd, "g", 1, 2 * 4096 + 7) == 1);
    say("written", p, PAGES);
    CHECK(munmap(p, PAGES * 4096) == 0);
    CHECK(ftruncate(fd, 0) == 0);
}

/* Before and beside, it is mapped as shared memory. */
static void share(int fd) {
    CHECK(ftruncate(fd, 4096) == 0);
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    p[9] = 's';
}

int main(void) {
    int fd = memfd_create("cut", 0), file = open("cut", O_RDWR | O_CREAT | O_TRUNC, 0600);
    cut_and_grow("memory, whole pages", fd, 2 * 4096);
    cut_and_grow("memory, part of a page", fd, 4096 + 20);
    cut_and_grow("file, whole pages", file, 2 * 4096);
    cut_and_grow("file, part of a page", file, 4096 + 5);
    share(fd);
    cut_and_grow("shared memory, whole pages", fd, 2 * 4096);
    cut_and_grow("shared memory, part of a page", fd, 4096 + 20);
    return finish();
}

/* A small file that is mapped for reading, as a database of one page is, and what becomes of the mapping: it grows with the file, is
 * moved, dropped and read anew, made writable. The page has been looked at as a whole right before. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 9

static int fd;

static unsigned sum(const unsigned char *p, size_t n) {
    unsigned s = 0;
    for (size_t i = 0; i < n; i++) s = s * 31 + p[i];
    return s;
}

static void fill(int page, char with) {
    char bytes[PAGE];
    memset(bytes, with, sizeof bytes);
    if (pwrite(fd, bytes, sizeof bytes, (off_t)page * PAGE) != PAGE) abort();
}

/* In pieces of 16 bytes: one of the ways that need all of a page. */
static void look(const unsigned char *page) {
    unsigned char copy[PAGE];
    for (int i = 0; i < PAGE; i += 16)
        __asm__ volatile("movups (%0), %%xmm0; movups %%xmm0, (%1)" ::"r"(page + i), "r"(copy + i) : "xmm0", "memory");
    printf("%08x\n", sum(copy, sizeof copy));
}

static unsigned char *map(size_t pages) {
    void *p = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) abort();
    return p;
}

static void start(char with) {
    char name[] = "mem_outsiders.XXXXXX";
    fd = mkstemp(name);
    if (fd < 0) abort();
    fill(0, with);
    fd = dup(fd);
}

static unsigned char *grow(unsigned char *page) {
    if (ftruncate(fd, PAGES * PAGE)) abort();
    look(page);
    page = mremap(page, PAGE, PAGES * PAGE, MREMAP_MAYMOVE);
    if (page == MAP_FAILED) abort();
    for (int i = 0; i < PAGES; i++) fill(i, (char)('a' + i));
    for (int i = 0; i < PAGES; i++) look(page + i * PAGE);
    return page;
}

static void drop(unsigned char *page) {
    look(page);
    if (madvise(page, PAGE, MADV_DONTNEED)) abort();
    look(page);
}

static void write_to(unsigned char *page) {
    unsigned char now[PAGE];
    look(page);
    if (mprotect(page, PAGE, PROT_READ | PROT_WRITE)) abort();
    look(page);
    memset(page, 'w', PAGE / 2);
    if (pread(fd, now, PAGE, 0) != PAGE) abort();
    printf("the file: %08x\n", sum(now, PAGE));
}

int main(void) {
    char name[64], path[256];
    for (int i = 0; i < 3; i++) {
        start((char)('1' + i));
        unsigned char *page = map(1);
        if (i == 0) grow(page);
        if (i == 1) drop(page);
        if (i == 2) write_to(page);
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(name, path, sizeof path - 1);
        if (n < 0) abort();
        path[n] = '\0';
        unlink(path);
    }
    return 0;
}

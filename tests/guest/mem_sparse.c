/* A file of 2 GB that is nearly all holes, mapped privately and shared: neither recording nor replay reads the holes from it.
 * Memory of 256 TB that two processes share: its holes cost nothing. */
#define _GNU_SOURCE
#include "guest.h"

#define SIZE (2ll << 30)

static void map(int flags, int prot) {
    int fd = open("sparse", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(ftruncate(fd, SIZE) == 0 && pwrite(fd, "hello", 5, SIZE / 2) == 5 && lseek(fd, 7, SEEK_SET) == 7);
    char *at = mmap(NULL, SIZE, prot, flags, fd, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        return;
    }
    if (prot & PROT_WRITE) at[SIZE - 1] = 3;
    printf("%.5s %d, at %ld\n", at + SIZE / 2, at[SIZE - 1], (long)lseek(fd, 0, SEEK_CUR));
    CHECK(munmap(at, SIZE) == 0);
    close(fd);
    unlink("sparse");
}

static void share(void) {
    int fd = memfd_create("sparse", 0), status;
    CHECK(ftruncate(fd, 256ll << 40) == 0);
    char *low = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(low != MAP_FAILED);
    strcpy(low, "parent");
    if (fork() == 0) {
        char *again = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        char *high = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 5ll << 30);
        CHECK(again != MAP_FAILED && high != MAP_FAILED);
        strcpy(high, again);
        strcpy(low, "child");
        _exit(finish());
    }
    CHECK(wait(&status) > 0 && status == 0);
    char *high = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 5ll << 30);
    printf("%s of %s, %d\n", low, high, high[4096]);
}

int main(void) {
    share();
    map(MAP_PRIVATE, PROT_READ);
    map(MAP_SHARED, PROT_READ | PROT_WRITE);
    return finish();
}

/* A file of 2 GB that is nearly all holes, mapped privately and shared: neither recording nor replay reads the holes from it. */
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

int main(void) {
    map(MAP_PRIVATE, PROT_READ);
    map(MAP_SHARED, PROT_READ | PROT_WRITE);
    return finish();
}

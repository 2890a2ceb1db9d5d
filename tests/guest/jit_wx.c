/* W^X: code pages flip between writable and executable by mprotect, by remapping, and by munmap and mmap. */
#include "guest.h"

static uint8_t *page;
static void put_return(int v) { page[0] = 0xb8, memcpy(page + 1, &v, 4), page[5] = 0xc3; }
static int run(void) { return ((int (*)(void))page)(); }

int main(void) {
    page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    for (int i = 0; i < 5000; i++) {
        mprotect(page, 65536, PROT_READ | PROT_WRITE);
        put_return(i);
        mprotect(page, 65536, PROT_READ | PROT_EXEC);
        sum += run();
    }
    printf("mprotect: %ld\n", sum);
    sum = 0;
    for (int i = 0; i < 2000; i++) {
        CHECK(mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              page);
        put_return(i * 3), sum += run();
    }
    printf("mapped over: %ld\n", sum);
    sum = 0;
    for (int i = 0; i < 1000; i++) {
        munmap(page, 4096);
        CHECK(mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                   -1, 0) == page);
        put_return(i * 5), sum += run();
    }
    printf("unmapped between: %ld\n", sum);
    /* code from a file that is rewritten by write() while mapped */
    int fd = memfd_create("code", 0);
    uint8_t fn[] = {0xb8, 0, 0, 0, 0, 0xc3};
    CHECK(write(fd, fn, 6) == 6 && ftruncate(fd, 4096) == 0);
    page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    sum = 0;
    for (int i = 0; i < 300; i++) fn[1] = i, CHECK(pwrite(fd, fn, 6, 0) == 6), sum += run();
    printf("rewritten through the file: %ld\n", sum);
    uint8_t *priv = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    sum = 0;
    for (int i = 0; i < 300; i++) fn[1] = i, CHECK(pwrite(fd, fn, 6, 0) == 6), sum += ((int (*)(void))priv)();
    printf("private view of it: %ld\n", sum);
    return finish();
}

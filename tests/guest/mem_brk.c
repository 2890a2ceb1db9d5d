/* brk and sbrk: growing, shrinking, zeroed again, page borders, limits, and in a forked child. */
#include "guest.h"
#include <sys/resource.h>

int main(void) {
    char *start = sbrk(0);
    CHECK(start == (char *)syscall(SYS_brk, 0));
    CHECK(sbrk(10000) == start && sbrk(0) == start + 10000);
    for (int i = 0; i < 10000; i++) CHECK(start[i] == 0);
    memset(start, 7, 10000);
    CHECK(sbrk(-9000) == start + 10000);
    CHECK(start[999] == 7);
    CHECK(sbrk(60000) == start + 1000);
    CHECK(start[999] == 7 && start[50000] == 0);
    CHECK(brk(start + 300000) == 0 && brk(start + 1) == 0 && brk(start + 200000) == 0);
    for (int i = 8192; i < 200000; i += 100) CHECK(start[i] == 0);
    CHECK(syscall(SYS_brk, 1) == (long)(start + 200000)); /* refused: below the start */
    CHECK(brk((void *)0x7fffffff0000) == -1 && errno == ENOMEM);
    pid_t pid = fork();
    if (!pid) {
        char *p = sbrk(4096 * 10);
        p[40000] = 1;
        struct rlimit r = {1 << 20, 1 << 20};
        setrlimit(RLIMIT_DATA, &r);
        _exit(sbrk(8 << 20) == (void *)-1 && errno == ENOMEM ? 4 : 5);
    }
    puts(wait_text(pid));
    CHECK(sbrk(0) == start + 200000);
    /* something in the way stops the heap */
    char *wall = (char *)(((uintptr_t)start + 200000 + 0xfffff) & ~0xffffful);
    CHECK(mmap(wall, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == wall);
    CHECK(brk(wall + 8192) == -1 && errno == ENOMEM);
    munmap(wall, 4096);
    CHECK(brk(wall + 8192) == 0);
    wall[5000] = 3;
    CHECK(brk(start) == 0 && sbrk(0) == start);
    return finish();
}

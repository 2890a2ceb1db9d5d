// libs: -lrt
/* shm_open by programs that are not related by fork alone: each child executes this program again. */
#include "shared.h"

static _Atomic long *map(const char *name, int flags) {
    int fd = shm_open(name, O_RDWR | flags, 0600);
    if (fd < 0) exit(3);
    if ((flags & O_CREAT) && ftruncate(fd, 12288)) exit(4);
    void *p = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

int main(int argc, char **argv) {
    char name[64];
    if (argc > 1) {
        _Atomic long *c = map(argv[1], 0);
        uint64_t h = 0;
        for (int k = 0; k < 1000; k++) h = mix(h, (uint64_t)atomic_fetch_add(&c[k % 3 * 512], 1));
        printf("%016lx\n", h);
        return 0;
    }
    snprintf(name, sizeof name, "/reprise-test-%d", (int)getpid());
    _Atomic long *c = map(name, O_CREAT);
    c[0] = 1000;
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            execl("/proc/self/exe", "posix", name, NULL);
            _exit(5);
        }
    while (wait(NULL) > 0) {}
    shm_unlink(name);
    printf("%ld %ld %ld\n", c[0], c[512], c[1024]);
    return c[0] + c[512] + c[1024] != 3000;
}

/* Double-mapped code: written through one view, run through another; also through /proc/self/mem and process_vm_writev. */
#include "guest.h"
#include <sys/uio.h>

int main(void) {
    int fd = memfd_create("jit", 0);
    CHECK(ftruncate(fd, 65536) == 0);
    uint8_t *w = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint8_t *x = mmap(NULL, 65536, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    uint8_t fn[6] = {0xb8, 0, 0, 0, 0, 0xc3};
    long sum = 0;
    for (int i = 0; i < 20000; i++) {
        memcpy(fn + 1, &i, 4), memcpy(w + 128, fn, 6);
        sum += ((int (*)(void))(x + 128))();
    }
    printf("two views: %ld\n", sum);
    memcpy(fn + 1, &(int){1}, 4);
    for (int i = 0; i < 4096; i++) memcpy(w + 16 * i, fn, 6);
    sum = 0;
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 4096; i++) w[16 * i + 1] = round, sum += ((int (*)(void))(x + 16 * i))();
    printf("many functions: %ld\n", sum);

    uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int mem = open("/proc/self/mem", O_RDWR);
    sum = 0;
    for (int i = 0; i < 500; i++) {
        memcpy(fn + 1, &i, 4);
        CHECK(pwrite(mem, fn, 6, (off_t)p) == 6);
        sum += ((int (*)(void))p)();
    }
    printf("/proc/self/mem: %ld\n", sum);
    uint8_t *q = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sum = 0;
    for (int i = 0; i < 500; i++) {
        memcpy(fn + 1, &i, 4);
        struct iovec from = {fn, 6}, to = {q, 6};
        CHECK(process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 6);
        sum += ((int (*)(void))q)();
    }
    printf("process_vm_writev: %ld\n", sum);

    /* a child writes into shared code */
    int pipe_to[2], pipe_back[2];
    CHECK(pipe(pipe_to) == 0 && pipe(pipe_back) == 0);
    pid_t pid = fork();
    if (!pid) {
        int v;
        while (read(pipe_to[0], &v, 4) == 4) {
            memcpy(w + 1, &v, 4), w[0] = 0xb8, w[5] = 0xc3;
            (void)!write(pipe_back[1], &v, 4);
            if (v == 99) _exit(0);
        }
    }
    sum = 0;
    for (int i = 0; i < 100; i++) {
        int v;
        CHECK(write(pipe_to[1], &i, 4) == 4 && read(pipe_back[0], &v, 4) == 4);
        sum += ((int (*)(void))x)();
    }
    printf("written by a child: %ld, %s\n", sum, wait_text(pid));
    return finish();
}

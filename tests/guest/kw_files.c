/* Code that changes without a store to its page: through its file, another view of it, /proc/PID/mem, or madvise. */
#include "guest.h"
#include <sys/uio.h>

static uint8_t fn[6] = {0xb8, 0, 0, 0, 0, 0xc3};
static const uint8_t *code(int v) { return memcpy(fn + 1, &v, 4), fn; }
static int run(const void *p) { return ((int (*)(void))p)(); }
static void *map(int prot, int flags, int fd) { return mmap(NULL, 4096, prot, flags, fd, 0); }

static void through_the_file(void) {
    int fd = open("code", O_RDWR | O_CREAT | O_TRUNC, 0700);
    CHECK(pwrite(fd, code(1), 6, 0) == 6 && ftruncate(fd, 4096) == 0);
    close(fd);
    fd = open("code", O_RDONLY);
    void *p = map(PROT_READ | PROT_EXEC, MAP_PRIVATE, fd);
    close(fd);
    CHECK(run(p) == 1);
    fd = open("code", O_RDWR); /* after the code has run */
    CHECK(run(p) == 1);
    long sum = 0;
    for (int i = 0; i < 50; i++) CHECK(pwrite(fd, code(i), 6, 0) == 6), sum += run(p);
    printf("pwrite: %ld\n", sum);
    sum = 0;
    for (int i = 0; i < 50; i++) {
        struct iovec v = {(void *)code(i), 6};
        CHECK(lseek(fd, 0, SEEK_SET) == 0 && writev(fd, &v, 1) == 6), sum += run(p);
    }
    printf("writev: %ld\n", sum);
    uint8_t *w = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    sum = 0;
    for (int i = 0; i < 50; i++) memcpy(w, code(i * 2), 6), sum += run(p);
    printf("a shared view: %ld\n", sum);
    int other = open("other", O_RDWR | O_CREAT | O_TRUNC, 0700);
    sum = 0;
    for (int i = 0; i < 50; i++) {
        loff_t from = 0, to = 0;
        CHECK(pwrite(other, code(i * 3), 6, 0) == 6 && copy_file_range(other, &from, fd, &to, 6, 0) == 6),
            sum += run(p);
    }
    printf("copy_file_range: %ld\n", sum);
    munmap(p, 4096), munmap(w, 4096), close(fd), close(other);

    /* the same file again, no longer open for writing; and a private copy of its page */
    fd = open("code", O_RDONLY);
    uint8_t *q = map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd);
    CHECK(run(q) == 49 * 3);
    q[1] = 11; /* from here on the page is the program's own */
    CHECK(run(q) == 11);
    close(fd);
    fd = open("code", O_WRONLY);
    CHECK(write(fd, code(5), 6) == 6 && run(q) == 11);
    close(fd);
    puts("own copy");
}

static void through_mem(const char *path) {
    int mem = open(path, O_RDWR);
    uint8_t *p = map(PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    long sum = 0;
    for (int i = 0; i < 50; i++) CHECK(pwrite(mem, code(i), 6, (off_t)p) == 6), sum += run(p);
    for (int i = 0; i < 50; i++)
        CHECK(lseek(mem, (off_t)p, SEEK_SET) == (off_t)p && write(mem, code(i), 6) == 6), sum += run(p);
    int copy = dup(mem);
    close(mem);
    for (int i = 0; i < 50; i++) {
        struct iovec v[2] = {{(void *)code(i), 3}, {fn + 3, 3}};
        CHECK(pwritev(copy, v, 2, (off_t)p) == 6), sum += run(p);
    }
    close(copy);
    printf("mem: %ld\n", sum);
}

static sigjmp_buf out;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)si, (void)uc;
    siglongjmp(out, 1);
}

/* Zeros are `add %al, (%rax)`. */
static bool is_gone(void *p) {
    if (sigsetjmp(out, 1)) return true;
    __asm__ volatile("xor %%eax, %%eax\n call *%0" ::"r"(p) : "rax", "memory", "cc");
    return false;
}

static void made_to_vanish(void) {
    handle(SIGSEGV, on, 0), handle(SIGBUS, on, 0);
    int fd = memfd_create("code", 0);
    CHECK(ftruncate(fd, 8192) == 0 && pwrite(fd, code(3), 6, 0) == 6);
    void *p = map(PROT_READ | PROT_EXEC, MAP_PRIVATE, fd), *s = map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd);
    CHECK(run(p) == 3 && run(s) == 3);
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);
    printf("punched: %d %d\n", is_gone(p), is_gone(s));
    CHECK(pwrite(fd, code(4), 6, 0) == 6 && run(p) == 4 && run(s) == 4);
    CHECK(madvise(s, 4096, MADV_REMOVE) == 0);
    printf("removed: %d %d\n", is_gone(p), is_gone(s));
    CHECK(pwrite(fd, code(5), 6, 0) == 6 && run(p) == 5 && run(s) == 5);
    CHECK(ftruncate(fd, 0) == 0);
    printf("cut off: %d %d\n", is_gone(p), is_gone(s));
    uint8_t *a = map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    memcpy(a, code(6), 6);
    CHECK(run(a) == 6 && madvise(a, 4096, MADV_DONTNEED) == 0);
    printf("not needed: %d\n", is_gone(a));
    memcpy(a, code(7), 6);
    CHECK(run(a) == 7 && madvise(a, 4096, MADV_WILLNEED) == 0 && run(a) == 7);
#ifdef MADV_POPULATE_WRITE
    CHECK((madvise(a, 4096, MADV_POPULATE_WRITE) == 0 || errno == EINVAL) && run(a) == 7);
#endif
    CHECK(mlock(a, 4096) == 0 && run(a) == 7);
}

int main(void) {
    through_the_file();
    through_mem("/proc/self/mem");
    char own[64];
    snprintf(own, sizeof own, "/proc/%d/task/%d/mem", getpid(), gettid());
    through_mem(own);
    made_to_vanish();
    return finish();
}

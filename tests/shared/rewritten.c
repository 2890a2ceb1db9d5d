/* Files that a process has mapped privately, code too, and that another one rewrites by calls: opened for writing, cut off, written. */
#include "shared.h"
#include <errno.h>
#include <setjmp.h>
#include <sys/stat.h>

#define PAGES 16
#define SIZE (PAGES * 4096)

static char name[] = "shared.rewritten.XXXXXX";
static int to[2], back[2];

static void tell(int fd) {
    if (write(fd, "x", 1) != 1) abort();
}
static void await(int fd) {
    char c;
    if (read(fd, &c, 1) != 1) abort();
}

/* Each page: a function that returns its number (mov $value, %eax; ret), and the number again behind it. */
static void fill(unsigned char *bytes, uint32_t value) {
    memset(bytes, 0x90, SIZE);
    for (uint32_t i = 0; i < PAGES; i++) {
        unsigned char *p = bytes + i * 4096;
        uint32_t v = value + i;
        p[0] = 0xb8;
        memcpy(p + 1, &v, 4);
        p[5] = 0xc3;
        memcpy(p + 8, &v, 4);
    }
}

static void make_file(uint32_t value) {
    static unsigned char bytes[SIZE];
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0700);
    fill(bytes, value);
    if (fd < 0 || write(fd, bytes, SIZE) != SIZE) abort();
    close(fd);
}

static sigjmp_buf out;
static void on_bus(int sig) {
    (void)sig;
    siglongjmp(out, 1);
}

static uint64_t call(const volatile unsigned char *p) { return ((uint32_t(*)(void))p)(); }
static uint64_t look(const volatile unsigned char *p) { return *(const volatile uint32_t *)(p + 8); }

/* What a mapping shows of all pages: as data, as code; a page that is not there counts, too. */
static uint64_t sum_of(volatile unsigned char *map, bool code) {
    volatile uint64_t sum = 0, i;
    for (i = 0; i < PAGES; i++) {
        if (sigsetjmp(out, 1)) {
            sum = mix(sum, 0xb05);
            continue;
        }
        sum = mix(sum, look(map + i * 4096));
        if (code) sum = mix(sum, call(map + i * 4096));
    }
    return sum;
}

static volatile unsigned char *map_it(int prot) {
    int fd = open(name, O_RDONLY);
    void *p = mmap(NULL, SIZE, prot, MAP_PRIVATE, fd, 0);
    if (fd < 0 || p == MAP_FAILED) abort();
    close(fd);
    return p;
}

/* The parent looks at pages at certain moments, while its child rewrites the file as cp does. */
static void in_order(void) {
    make_file(1000);
    volatile unsigned char *code = map_it(PROT_READ | PROT_EXEC), *data = map_it(PROT_READ | PROT_WRITE);
    uint64_t before = mix(call(code), look(data));
    data[8 + 4096] = 77;
    fflush(stdout);
    if (fork() == 0) {
        struct stat st = {.st_size = -1};
        int fd = open(name, O_WRONLY | O_TRUNC);
        if (fstat(fd, &st) || st.st_size) abort(); /* in front of this call the other one is told */
        tell(to[1]);
        await(back[0]); /* it has looked at a file without an end */
        static unsigned char bytes[SIZE];
        fill(bytes, 2000);
        if (write(fd, bytes, SIZE) != SIZE) abort();
        tell(to[1]);
        await(back[0]);
        if (pwrite(fd, "\x11\x22\x33\x44", 4, 8) != 4 || pwrite(fd, "\x11\x22\x33\x44", 4, 3 * 4096 + 1) != 4) abort();
        tell(to[1]);
        _exit(0);
    }
    await(to[0]);
    int caught = sigsetjmp(out, 1) ? 1 : (look(code + 5 * 4096), 0);
    caught += sigsetjmp(out, 1) ? 2 : (look(data + 4096), 0); /* written, and gone */
    tell(back[1]);
    await(to[0]);
    uint64_t again = mix(call(code + 2 * 4096), look(data + 4096));
    tell(back[1]);
    await(to[0]);
    wait(NULL);
    uint64_t end = mix(sum_of(code, true), sum_of(data, false));
    printf("in order: %016lx %d %016lx %016lx\n", before, caught, again, end);
    munmap((void *)code, SIZE);
    munmap((void *)data, SIZE);
}

/* And all the time, while the child goes on and on. Code that is cut off while it runs is no test: it may end anyhow. */
static void racing(bool cuts) {
    make_file(1);
    volatile unsigned char *code = map_it(PROT_READ | PROT_EXEC), *data = map_it(PROT_READ);
    volatile uint64_t *go = share(4096);
    uint64_t sum = mix(sum_of(code, !cuts), sum_of(data, false));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        static unsigned char bytes[SIZE];
        int fd = open(name, O_RDWR | (cuts ? O_TRUNC : 0));
        for (uint32_t i = 1; !*go && i < 20000; i++) {
            fill(bytes, i * 100);
            if (cuts && i % 3 == 0 && ftruncate(fd, 0)) abort();
            if (pwrite(fd, bytes, SIZE, 0) != SIZE) abort();
        }
        _exit(0);
    }
    for (int i = 0; i < 30; i++) {
        sum = mix(sum, mix(sum_of(code, !cuts), sum_of(data, false)));
        if (i % 3 == 0) madvise((void *)data, SIZE, MADV_DONTNEED);
        if (i % 7 == 0) madvise((void *)code, SIZE, MADV_DONTNEED);
        if (i == 20) { /* while it is open for writing elsewhere */
            munmap((void *)data, SIZE);
            data = map_it(PROT_READ | PROT_WRITE);
        }
        usleep(200);
    }
    *go = 1;
    wait(NULL);
    printf("racing: %016lx\n", sum);
    munmap((void *)code, SIZE);
    munmap((void *)data, SIZE);
}

/* Mapped by parent and child; truncate() by name; a thread of the kernel's waits in a call with such a page. */
static void inherited(void) {
    make_file(5);
    volatile unsigned char *data = map_it(PROT_READ | PROT_WRITE);
    data[9] = 1;
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        if (fork()) continue;
        uint64_t sum = 0;
        tell(to[1]);
        await(back[0]);
        for (int k = 0; k < 20; k++) sum = mix(sum, sum_of(data, false)), usleep(100);
        FILE *f = tmpfile(); /* what a call reads from it */
        if (!f || (write(fileno(f), (const void *)(data + 2 * 4096), 8192) != 8192 && errno != EFAULT)) abort();
        printf("%d: %016lx\n", i, sum);
        fflush(stdout);
        _exit(0);
    }
    await(to[0]);
    await(to[0]);
    tell(back[1]);
    tell(back[1]);
    for (int i = 0; i < 10; i++) {
        make_file((uint32_t)i * 1000);
        if (i % 2 && truncate(name, 5 * 4096 + 100)) abort();
    }
    wait(NULL);
    wait(NULL);
    printf("inherited: %016lx\n", sum_of(data, false));
    munmap((void *)data, SIZE);
}

int main(void) {
    int fd = mkstemp(name);
    if (fd < 0 || pipe(to) || pipe(back)) abort();
    close(fd);
    signal(SIGBUS, on_bus);
    in_order();
    racing(false);
    racing(true);
    inherited();
    unlink(name);
    return 0;
}

/* Files that are mapped shared and changed by calls, in memory and on disk, while they are mapped and while they are not; and
 * /dev/zero, which is anonymous memory by another name. */
#include "guest.h"

#define PAGE 4096ul

static int make(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    unlink(name);
    return fd;
}

static char *map(int fd, int prot) {
    char *p = mmap(NULL, 2 * PAGE, prot, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static void grow(const char *where, int fd) {
    CHECK(ftruncate(fd, 120) == 0);
    char *p = map(fd, PROT_READ), data[2 * PAGE];
    memset(data, 0xa5, sizeof data);
    CHECK(pwrite(fd, data, 2 * PAGE - 120, 120) == 2 * PAGE - 120);
    printf("%s: %d %d %d\n", where, p[0], p[120], p[2 * PAGE - 1]);
    CHECK(ftruncate(fd, 200) == 0 && ftruncate(fd, 2 * PAGE) == 0);
    printf("%s, cut and grown: %d %d %d\n", where, p[199], p[200], p[PAGE]);
    munmap(p, 2 * PAGE);
    close(fd);
}

static void write_and_map(const char *where, int fd) {
    char *p = map(fd, PROT_READ | PROT_WRITE);
    CHECK(write(fd, "x", 1) == 1 && p[0] == 'x');
    p[1] = 'y';
    CHECK(pwrite(fd, "z", 1, 0) == 1 && p[0] == 'z');
    CHECK(pwrite(fd, "yy", 2, 1) == 2);
    printf("%s: %.3s\n", where, p);
    munmap(p, 2 * PAGE);
    CHECK(pwrite(fd, "b", 1, 1) == 1);
    p = map(fd, PROT_READ | PROT_WRITE);
    printf("%s, again: %.3s\n", where, p);
    p[0] = 'q';
    char back[4] = "";
    CHECK(pread(fd, back, 3, 0) == 3);
    printf("%s, read back: %s\n", where, back);
    munmap(p, 2 * PAGE);
    close(fd);
}

static void zero_device(void) {
    int fd = open("/dev/zero", O_RDWR);
    char *a = map(fd, PROT_READ | PROT_WRITE), *b = map(fd, PROT_READ),
         *c = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    memset(a, 7, 2 * PAGE);
    c[5] = 9;
    pid_t pid = fork();
    if (pid == 0) {
        a[3] = 8;
        c[5] = 10;
        _exit(b[0]);
    }
    printf("zero: child %s,", wait_text(pid));
    printf(" left %d %d %d %d\n", a[3], a[4], b[0], c[5]);
}

int main(void) {
    grow("tmpfs", make("/dev/shm/reprise-test-grow"));
    grow("memfd", memfd_create("grow", 0));
    grow("disk", make("grow"));
    write_and_map("tmpfs", make("/dev/shm/reprise-test-write"));
    write_and_map("disk", make("write"));
    zero_device();
    return finish();
}

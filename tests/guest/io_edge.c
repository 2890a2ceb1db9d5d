/* Results that end where memory ends: buffers in the last bytes before a hole, lengths that grow beyond the buffer, sets and
 * structures that are said to be larger than they are. And requests that nobody knows. */
#include "guest.h"
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>

static char *hole; /* nothing is mapped from here on */

static void names(void) {
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un a = {AF_UNIX, "a name that does not fit"};
    CHECK(bind(s, (struct sockaddr *)&a, sizeof a) == 0);
    char *small = hole - 12;
    socklen_t len = 12;
    memset(small, 'x', 12);
    CHECK(getsockname(s, (struct sockaddr *)small, &len) == 0 && len > 12);
    printf("cut off: %.10s, of %u bytes\n", small + 2, len);
    int *value = (int *)hole - 1;
    len = 64;
    *value = -1;
    CHECK(getsockopt(s, SOL_SOCKET, SO_TYPE, value, &len) == 0 && len == 4);
    printf("type %d\n", *value);
    unlink(a.sun_path);
    close(s);
}

static void sets(void) {
    int p[2];
    CHECK(pipe(p) == 0 && write(p[1], "!", 1) == 1);
    unsigned long *set = (unsigned long *)(hole - 4096);
    memset(set, 0, 4096);
    set[p[0] / 64] |= 1ul << p[0] % 64;
    struct timeval none = {0, 0};
    errno = 0;
    long n = syscall(SYS_select, 4096 * 8, set, NULL, NULL, &none);
    printf("select: %ld, %lx\n", n, set[0]);
    close(p[0]), close(p[1]);
}

#define SAY(what, call)                               \
    do {                                              \
        errno = 0;                                    \
        long ret = call;                              \
        printf(what ": %ld, errno %d\n", ret, errno); \
    } while (0)

static void unknown(void) {
    char file[] = "edge";
    int fd = open(file, O_RDWR | O_CREAT, 0600);
    SAY("no such call", syscall(5555));
    SAY("no such prctl", prctl(7777, 0, 0, 0, 0));
    SAY("no such fcntl", fcntl(fd, 7777, 0));
    SAY("no such ioctl", ioctl(fd, 0x7a7a7a7a, hole - 8));
    SAY("of nothing", ioctl(-1, 0x7a7a7a7a, hole - 8));
    struct {
        unsigned long start, length;
        unsigned flags, mapped, count, reserved;
    } *map = (void *)(hole - 32);
    memset(map, 0, 32);
    map->count = -1u; /* extents, it says */
    SAY("extents of nothing", ioctl(-1, 0xc020660b, map));
    unlink(file);
    close(fd);
}

int main(void) {
    char *m = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hole = m + 2 * 4096;
    CHECK(munmap(hole, 4096) == 0);
    names();
    sets();
    unknown();
    return finish();
}

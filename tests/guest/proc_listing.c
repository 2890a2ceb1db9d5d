/* A folder of /proc is listed in small pieces: nothing is written behind the end of each, and all is there once. */
#include "guest.h"
#include <dirent.h>

#define FILLED 0x55
#define AT_HAND 400 /* descriptors */

static int pieces, touched;
static char listed[AT_HAND];

static void note(const char *record) {
    const struct dirent64 *e = (const void *)record;
    int fd = atoi(e->d_name);
    if (e->d_name[0] != '.' && fd >= 0 && fd < AT_HAND) listed[fd]++;
}

static void list(size_t room) {
    char buf[512];
    int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
    memset(listed, 0, sizeof listed);
    for (;;) {
        memset(buf, FILLED, sizeof buf);
        long n = syscall(SYS_getdents64, fd, buf, room);
        CHECK(n >= 0);
        for (size_t i = n > 0 ? (size_t)n : 0; i < sizeof buf; i++) touched += buf[i] != FILLED;
        if (n <= 0) break;
        pieces++;
        for (long at = 0; at < n; at += ((struct dirent64 *)(buf + at))->d_reclen) note(buf + at);
    }
    for (int i = 0; i < AT_HAND; i++) CHECK(listed[i] == (fcntl(i, F_GETFD) >= 0));
    CHECK(syscall(SYS_getdents64, fd, buf, 8) == 0 || errno == EINVAL);
    close(fd);
}

int main(void) {
    for (int i = 0; i < 20; i++) dup(1);
    for (size_t room = 24; room <= 512; room += 8) list(room);
    CHECK(pieces > 100);
    printf("bytes behind the end: %d\n", touched);
    return finish();
}

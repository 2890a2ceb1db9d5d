/* inotify events of files made, written, renamed and removed. */
#include "guest.h"
#include <sys/inotify.h>

int main(void) {
    CHECK(mkdir("watched", 0700) == 0);
    int in = inotify_init1(IN_NONBLOCK);
    CHECK(inotify_add_watch(in, "watched",
                            IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE) == 1);
    int fd = open("watched/a", O_CREAT | O_WRONLY, 0600);
    CHECK(write(fd, "x", 1) == 1);
    close(fd);
    rename("watched/a", "watched/b"), unlink("watched/b"), rmdir("watched");
    char buf[4096] __attribute__((aligned(8)));
    ssize_t n = read(in, buf, sizeof buf);
    uint32_t cookie = 0;
    for (char *p = buf; p < buf + n; p += sizeof(struct inotify_event) + ((struct inotify_event *)p)->len) {
        struct inotify_event *e = (void *)p;
        printf("%x %s\n", e->mask, e->len ? e->name : "");
        if (e->mask == IN_MOVED_FROM) cookie = e->cookie;
        if (e->mask == IN_MOVED_TO) CHECK(e->cookie == cookie);
    }
    return finish();
}

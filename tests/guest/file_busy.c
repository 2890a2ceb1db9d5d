/* A program's own file is busy while it runs, whatever else may be said about it. (It is a copy: nothing is lost if not.) */
#include "guest.h"

#include <linux/futex.h>

static void show(const char *what, long ret) {
    printf("%s: %s\n", what, ret >= 0 ? "done" : strerror(errno));
    if (ret > 2) close((int)ret);
}

static void use(const char *file, const char *link) {
    show("read", open(file, O_RDONLY));
    show("write", open(file, O_WRONLY));
    show("write, by a link", openat(AT_FDCWD, link, O_RDWR));
    show("the link itself", open(link, O_WRONLY | O_NOFOLLOW));
    show("cut", open(file, O_RDONLY | O_TRUNC));
    show("make", open(file, O_WRONLY | O_CREAT | O_EXCL, 0700));
    show("creat", creat(file, 0700));
    show("truncate", truncate(file, 0));
    show("truncate to nothing sensible", truncate(file, -1));
    show("name", open(file, O_PATH | O_RDWR));
    struct stat st;
    CHECK(stat(file, &st) == 0 && st.st_size > 1000);
    CHECK(unlink(file) == 0);
    show("write to the new one", open(file, O_WRONLY | O_CREAT, 0700));
}

int main(int argc, char **argv) {
    static char data[1 << 20];
    if (argc > 1) {
        use("copy", "link");
        uint32_t word = 0;
        show("futex", syscall(SYS_futex, &word, FUTEX_LOCK_PI | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0));
        return finish();
    }
    int from = open("/proc/self/exe", O_RDONLY), to = open("copy", O_WRONLY | O_CREAT, 0700);
    for (ssize_t n; (n = read(from, data, sizeof data)) > 0;) CHECK(write(to, data, (size_t)n) == n);
    close(to);
    CHECK(symlink("copy", "link") == 0);
    execl("copy", "copy", "now", NULL);
    return 1;
}

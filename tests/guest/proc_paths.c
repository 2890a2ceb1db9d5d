/* The program's own files in /proc by other names: relative to a descriptor, through links, by number, by thread; and
 * those of a child. */
#include "guest.h"
#include <libgen.h>
#include <linux/openat2.h>
#include <sys/prctl.h>

static char text[1 << 18], exe[4096];

static void link_is(const char *what, int dirfd, const char *path) {
    char to[4096] = "";
    ssize_t n = readlinkat(dirfd, path, to, sizeof to - 1);
    printf("%s: %d\n", what, n > 0 && !strcmp(to, exe));
}
static bool file_is(int fd) {
    struct stat a, b;
    bool same = fd >= 0 && fstat(fd, &a) == 0 && stat(exe, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
    close(fd);
    return same;
}
static bool maps_are_own(int fd) {
    size_t n = 0;
    ssize_t r;
    while (n < sizeof text - 1 && (r = read(fd, text + n, sizeof text - 1 - n)) > 0) n += r;
    text[n] = 0;
    close(fd);
    return has_text(text, exe) && has_text(text, "[stack]") && has_text(text, "r-xp") && !has_text(text, "reprise");
}
static volatile bool created; /* pthread_create blocks signals while it works */
static void *in_thread(void *arg) {
    char path[64];
    while (!created) sched_yield();
    link_is("thread-self", AT_FDCWD, "/proc/thread-self/exe");
    snprintf(path, sizeof path, "/proc/self/task/%d/exe", gettid());
    link_is("task", AT_FDCWD, path);
    snprintf(path, sizeof path, "/proc/%d/task/%d/maps", getpid(), gettid());
    printf("maps of a task: %d\n", maps_are_own(open(path, O_RDONLY)));
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    slurp("/proc/thread-self/status", text, sizeof text);
    printf("blocked in the thread: %d\n", has_text(text, "SigBlk:\t0000000000000800\n"));
    slurp("/proc/self/status", text, sizeof text);
    printf("not in the process: %d\n", has_text(text, "SigBlk:\t0000000000000000\n"));
    return arg;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        (void)!write(1, argv[1], strlen(argv[1]));
        pause();
    }
    CHECK(realpath(argv[0], exe) != NULL);
    int proc = open("/proc", O_RDONLY | O_DIRECTORY), self = open("/proc/self", O_PATH | O_DIRECTORY);
    char number[64];
    snprintf(number, sizeof number, "%d/exe", getpid());
    link_is("from /proc", proc, "self/exe"), link_is("number", proc, number), link_is("from /proc/self", self, "exe");
    link_is("roundabout", AT_FDCWD, "/proc/../proc/./self//exe");
    int link = open("/proc/self/exe", O_PATH | O_NOFOLLOW);
    link_is("empty path", link, "");
    close(link);
    char small[4] = "zzzz";
    CHECK(readlink("/proc/self/exe", small, 3) == 3 && small[3] == 'z' && !memcmp(small, exe, 3));
    CHECK(readlink("/proc/self/exe", small, 0) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_readlink, "/proc/self/exe", 8, 10) == -1 && errno == EFAULT);
    printf("open: %d %d %d\n", file_is(open("/proc/self/exe", O_RDONLY)), file_is(openat(self, "exe", O_PATH)),
           file_is(openat(proc, number, O_RDONLY)));
    struct open_how how = {.flags = O_RDONLY};
    printf("openat2: %d\n", file_is(syscall(SYS_openat2, self, "exe", &how, sizeof how)));
    CHECK(open("/proc/self/exe", O_RDONLY | O_NOFOLLOW) == -1 && errno == ELOOP);
    CHECK(open("/proc/self/exe", O_RDWR) == -1 && errno == ETXTBSY);
    struct stat a, b;
    struct statx sx;
    CHECK(lstat("/proc/self/exe", &a) == 0 && S_ISLNK(a.st_mode));
    CHECK(fstatat(self, "exe", &a, 0) == 0 && stat(exe, &b) == 0 && a.st_ino == b.st_ino);
    CHECK(statx(self, "exe", 0, STATX_ALL, &sx) == 0 && sx.stx_ino == b.st_ino);
    CHECK(access("/proc/self/exe", X_OK) == 0 && access("/proc/self/exe/x", F_OK) == -1 && errno == ENOTDIR);

    printf("maps: %d %d %d\n", maps_are_own(openat(proc, "self/maps", O_RDONLY)),
           maps_are_own(openat(self, "maps", O_RDONLY)), maps_are_own(openat(self, "smaps", O_RDONLY)));
    int low = open("/dev/null", O_RDONLY);
    close(low);
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    printf("lowest number %d, close on exec %d, cannot be written %d\n", maps == low, fcntl(maps, F_GETFD),
           write(maps, "x", 1) == -1 && errno == EBADF);
    close(maps);
    CHECK(open("/proc/self/maps/x", O_RDONLY) == -1 && errno == ENOTDIR);
    if (chdir("/proc/self") == 0) link_is("working directory", AT_FDCWD, "exe");

    pthread_t t;
    pthread_create(&t, NULL, in_thread, NULL);
    created = true;
    pthread_join(t, NULL);

    int p[2];
    CHECK(pipe(p) == 0);
    pid_t pid = fork();
    if (!pid) {
        dup2(p[1], 1);
        execl(exe, "child", "up", NULL);
        _exit(1);
    }
    CHECK(read(p[0], small, 2) == 2);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    link_is("child", AT_FDCWD, path);
    printf("child's file: %d\n", file_is(open(path, O_RDONLY)));
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    ssize_t n = slurp(path, text, sizeof text);
    printf("child's arguments: %zd, %s %s\n", n, text, text + 6);
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    slurp(path, text, sizeof text);
    printf("child's name: %s", text);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    slurp(path, text, sizeof text);
    CHECK(has_text(text, exe) && has_text(text, "[stack]") && !has_text(text, "reprise"));
    kill(pid, SIGKILL), puts(wait_text(pid));
    return finish();
}

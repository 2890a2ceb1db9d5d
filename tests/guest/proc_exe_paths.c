/* Calls that follow /proc/self/exe without opening it meet the program's own file: times, modes, hard links, watches,
 * bind mounts. */
#include "guest.h"
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <utime.h>

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}
static time_t mtime(const char *path) {
    struct stat st;
    CHECK(stat(path, &st) == 0);
    return st.st_mtime;
}
static bool mounts(const char *exe) {
    close(open("target", O_CREAT | O_RDONLY, 0600));
    return mount("/proc/self/exe", "target", NULL, MS_BIND, NULL) == 0 && same_file("target", exe);
}

/* What a copy of the program does in the test's folder: it may change itself there. */
static void as_copy(const char *exe, bool may_mount) {
    CHECK(chmod("/proc/self/exe", 0711) == 0);
    struct stat st;
    CHECK(stat(exe, &st) == 0);
    printf("mode %o\n", st.st_mode & 07777);
    struct utimbuf old = {1000, 2000};
    CHECK(utime("/proc/self/exe", &old) == 0);
    printf("time %ld\n", (long)mtime(exe));
    struct timespec ts[2] = {{3000, 0}, {4000, 0}};
    CHECK(utimensat(AT_FDCWD, "/proc/self/exe", ts, 0) == 0);
    printf("time %ld\n", (long)mtime(exe));
    if (setxattr(exe, "user.reprise", "yes", 3, 0) == 0) {
        char value[8];
        CHECK(getxattr("/proc/self/exe", "user.reprise", value, sizeof value) == 3);
    }
    CHECK(linkat(AT_FDCWD, "/proc/self/exe", AT_FDCWD, "hard", AT_SYMLINK_FOLLOW) == 0);
    printf("hard link: %d\n", same_file("hard", exe));
    struct statfs a, b;
    CHECK(statfs("/proc/self/exe", &a) == 0 && statfs(exe, &b) == 0 && !memcmp(&a.f_fsid, &b.f_fsid, sizeof a.f_fsid));
    int watch = inotify_init1(IN_NONBLOCK);
    CHECK(inotify_add_watch(watch, "/proc/self/exe", IN_ATTRIB) > 0 && chmod(exe, 0700) == 0);
    char event[256];
    printf("watched: %d\n", read(watch, event, sizeof event) > 0);
    if (may_mount) printf("bind mount: %d\n", mounts(exe));
}

int main(int argc, char **argv) {
    char exe[4096], command[8300];
    CHECK(realpath(argv[0], exe) != NULL);
    if (argc > 1) {
        as_copy(exe, argv[1][0] == 'm');
        return finish();
    }
    unlink("hard"), unlink("copy");
    snprintf(command, sizeof command, "cp %s copy", exe);
    CHECK(system(command) == 0);
    /* in front of exec: the program's file has to be one of a mount in the new namespace */
    bool may_mount = unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    execl("./copy", "./copy", may_mount ? "mount" : "no", NULL);
    return 1;
}

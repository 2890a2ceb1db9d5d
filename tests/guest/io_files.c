/* Ordinary file work through many calls: vectors, locks, getdents, links, times, copies, sparse files, descriptors. */
#include "guest.h"
#include <dirent.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

int main(void) {
    int fd = open("f", O_RDWR | O_CREAT | O_EXCL, 0640);
    struct iovec v[3] = {{"one ", 4}, {"two ", 4}, {"three\n", 6}};
    CHECK(writev(fd, v, 3) == 14 && lseek(fd, 0, SEEK_CUR) == 14);
    char b[64] = "", c[4];
    CHECK(pread(fd, b, 9, 4) == 9 && !strcmp(b, "two three"));
    struct iovec w[2] = {{c, 4}, {b, 10}};
    CHECK(preadv(fd, w, 2, 0) == 14 && !memcmp(c, "one ", 4));
    CHECK(open("f", O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST);
    CHECK(link("f", "g") == 0 && symlink("f", "s") == 0 && readlink("s", b, 64) == 1);
    struct stat st;
    CHECK(stat("g", &st) == 0 && st.st_nlink == 2 && st.st_size == 14 && (st.st_mode & 0777) == 0640);
    CHECK(lstat("s", &st) == 0 && S_ISLNK(st.st_mode));
    struct timespec times[2] = {{1000, 5}, {2000, 7}};
    CHECK(utimensat(AT_FDCWD, "f", times, 0) == 0 && fstat(fd, &st) == 0 && st.st_mtime == 2000);
    struct statx sx;
    CHECK(statx(AT_FDCWD, "f", 0, STATX_ALL, &sx) == 0 && sx.stx_size == 14 && sx.stx_mtime.tv_nsec == 7);
    int out = open("copy", O_RDWR | O_CREAT, 0600);
    CHECK(sendfile(out, fd, &(off_t){0}, 100) == 14);
    CHECK(copy_file_range(fd, &(off_t){4}, out, NULL, 4, 0) == 4 && lseek(out, 0, SEEK_END) == 18);
    CHECK(ftruncate(out, 1 << 20) == 0 && lseek(out, 1000, SEEK_SET) == 1000 && read(out, c, 4) == 4 && c[0] == 0);
    CHECK(fallocate(out, 0, 0, 4096) == 0 || errno == EOPNOTSUPP);
    CHECK(flock(fd, LOCK_EX) == 0);
    pid_t pid = fork();
    if (!pid) {
        int other = open("f", O_RDWR);
        _exit(flock(other, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK ? 3 : 4);
    }
    printf("lock: %s\n", wait_text(pid));
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    CHECK(fcntl(fd, F_SETLK, &fl) == 0);
    pid = fork();
    if (!pid) {
        struct flock g = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        fcntl(fd, F_GETLK, &g);
        _exit(g.l_pid == getppid() ? 5 : 6);
    }
    printf("record lock: %s\n", wait_text(pid));
    int n = -1;
    CHECK(lseek(fd, 4, SEEK_SET) == 4 && ioctl(fd, FIONREAD, &n) == 0 && n == 10);
    CHECK(mkdir("d", 0700) == 0);
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "d/file-%03d", i);
        close(open(name, O_CREAT | O_WRONLY, 0600));
    }
    struct dirent **list;
    n = scandir("d", &list, NULL, by_name);
    printf("%d entries, %s .. %s\n", n, list[2]->d_name, list[n - 1]->d_name);
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "d/file-%03d", i);
        CHECK(unlink(name) == 0);
    }
    CHECK(rmdir("d") == 0 && rename("copy", "renamed") == 0 && access("copy", F_OK) == -1);
    struct statfs sf;
    CHECK(statfs(".", &sf) == 0 && sf.f_bsize > 0);
    CHECK(dup2(fd, 200) == 200 && fcntl(200, F_GETFD) == 0 && fcntl(fd, F_SETFL, O_APPEND) == 0 &&
          (fcntl(200, F_GETFL) & O_APPEND));
    umask(027);
    close(open("masked", O_CREAT | O_WRONLY, 0666));
    CHECK(stat("masked", &st) == 0 && (st.st_mode & 0777) == 0640);
    char cwd[4096], cwd2[4096];
    CHECK(getcwd(cwd, sizeof cwd) && chdir("/") == 0 && chdir(cwd) == 0 && getcwd(cwd2, sizeof cwd2) &&
          !strcmp(cwd, cwd2));
    CHECK(unlink("f") == 0 && unlink("g") == 0 && fstat(fd, &st) == 0 && st.st_nlink == 0);
    FILE *f = fopen("text", "w+");
    for (int i = 0; i < 10000; i++) fprintf(f, "%d %x %.3f\n", i, i, i / 7.0);
    rewind(f);
    long sum = 0;
    int a;
    unsigned x;
    double d;
    while (fscanf(f, "%d %x %lf", &a, &x, &d) == 3) sum += a + x + (long)d;
    printf("stdio %ld\n", sum);
    fclose(f);
    unlink("s"), unlink("renamed"), unlink("masked"), unlink("text");
    return finish();
}

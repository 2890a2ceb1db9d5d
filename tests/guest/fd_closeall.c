/* Closing every descriptor, in the ways daemons do, and going on: threads, signals, fork and exec still work. */
#include "guest.h"
#include <dirent.h>
#include <sys/resource.h>

static volatile int handled;
static void on(int sig) { (void)sig, handled++; }
static void *thread(void *arg) { return (void *)((long)arg + 1); }

static void list_open(const char *when) {
    printf("%s:", when);
    for (int fd = 0; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) != -1) printf(" %d", fd);
    puts("");
}
static void list_proc(void) {
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(d)) n++;
    closedir(d);
    printf("/proc/self/fd lists %d\n", n);
}
static void go_on(void) {
    pthread_t t;
    void *r = NULL;
    CHECK(pthread_create(&t, NULL, thread, (void *)1) == 0);
    pthread_join(t, &r);
    CHECK(r == (void *)2);
    int before = handled;
    raise(SIGUSR1);
    CHECK(handled == before + 1);
    pid_t pid = fork();
    if (!pid) execl("/bin/sh", "sh", "-c", "echo the shell runs", NULL), _exit(1);
    CHECK(!strcmp("exit 0", wait_text(pid)));
    CHECK(open("/dev/null", O_RDONLY) == 3);
    close(3);
}

int main(void) {
    signal(SIGUSR1, on);
    for (int fd = 3; fd < 1024; fd++) close(fd);
    list_open("closed one by one"), list_proc(), go_on();
    CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0);
    list_open("close_range"), list_proc(), go_on();

    struct rlimit lim;
    getrlimit(RLIMIT_NOFILE, &lim);
    printf("limit at least 1024: %d\n", lim.rlim_cur >= 1024);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 10; fd < 1000; fd += 7) CHECK(dup2(null, fd) == fd);
    CHECK(fcntl(null, F_DUPFD, 500) == 501); /* 10 + 7 * 70 = 500 is taken */
    CHECK(dup2(null, lim.rlim_cur - 1) == (int)lim.rlim_cur - 1);
    close(lim.rlim_cur - 1);
    CHECK(dup2(null, lim.rlim_cur) == -1 && errno == EBADF);
    CHECK(syscall(SYS_close_range, 4, 2000, 0) == 0);
    list_open("after many");
    CHECK(syscall(SYS_close_range, 3, ~0u, 4 /* CLOEXEC */) == 0);
    CHECK(fcntl(null, F_GETFD) == FD_CLOEXEC);
    close(null);
    CHECK(close(3) == -1 && errno == EBADF);
    CHECK(syscall(SYS_close_range, 5, 4, 0) == -1 && errno == EINVAL);
    closefrom(3);
    go_on();

    pid_t pid = fork();
    if (!pid) { /* not even standard descriptors */
        for (int fd = 0; fd < 1024; fd++) close(fd);
        CHECK(open("/dev/null", O_RDWR) == 0);
        handled = 0, raise(SIGUSR1);
        pid_t p = fork();
        if (!p) execl("/bin/true", "true", NULL), _exit(9);
        int st;
        waitpid(p, &st, 0);
        _exit(st == 0 && handled == 1 ? 5 : 6);
    }
    printf("all closed: %s\n", wait_text(pid));
    return finish();
}

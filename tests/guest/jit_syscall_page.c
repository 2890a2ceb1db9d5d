/* System calls that write into a page which also holds executed code: no EFAULT, nothing lost, the code goes on; and
 * calls that overwrite the code itself. */
#include "guest.h"
#include <sys/socket.h>
#include <sys/uio.h>

static uint8_t *page;
static int run(void) { return ((int (*)(void))page)(); }
static void put_return(int v) { page[0] = 0xb8, memcpy(page + 1, &v, 4), page[5] = 0xc3; }

int main(void) {
    page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *data = (char *)page + 2000;
    int p[2], s[2];
    CHECK(pipe(p) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
    put_return(5);
    int ok = 0;
    for (int i = 0; i < 200; i++) {
        CHECK(run() == 5);
        char msg[64];
        int n = snprintf(msg, sizeof msg, "message %d", i) + 1;
        CHECK(send(s[1], msg, n, 0) == n);
        CHECK(recv(s[0], data, 64, 0) == n && !strcmp(data, msg));
        CHECK(run() == 5);
        CHECK(write(p[1], msg, n) == n && read(p[0], data, 64) == n && !strcmp(data, msg));
        CHECK(run() == 5);
        struct iovec v[2] = {{data, 4}, {data + 100, 60}};
        CHECK(send(s[1], msg, n, 0) == n);
        struct msghdr h = {.msg_iov = v, .msg_iovlen = 2};
        CHECK(recvmsg(s[0], &h, 0) == n && !memcmp(data + 100, msg + 4, n - 4));
        CHECK(run() == 5);
        struct stat *st = (struct stat *)(page + 2048);
        CHECK(fstat(p[0], st) == 0 && S_ISFIFO(st->st_mode));
        CHECK(run() == 5);
        struct timespec *ts = (struct timespec *)(page + 2048);
        CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, ts) == 0 && ts->tv_nsec < 1000000000);
        CHECK(run() == 5);
        CHECK(getcwd(data, 1000) != NULL && data[0] == '/');
        CHECK(run() == 5);
        int *status = (int *)(page + 2048);
        if (i % 20 == 0) {
            pid_t pid = fork();
            if (!pid) _exit(run());
            CHECK(waitpid(pid, status, 0) == pid && WEXITSTATUS(*status) == 5);
            CHECK(run() == 5);
        }
        ok++;
    }
    printf("%d rounds\n", ok);

    /* a read across the border of two pages with code */
    memcpy(page + 4096, page, 6);
    CHECK(((int (*)(void))(page + 4096))() == 5 && run() == 5);
    char big[6000];
    memset(big, 'q', sizeof big);
    CHECK(write(p[1], big, 6000) == 6000 && read(p[0], page + 1000, 6000) == 6000 && page[6999] == 'q');
    CHECK(run() == 5);

    /* the call itself brings new code */
    int fd = memfd_create("code", 0);
    long sum = 0;
    for (int i = 0; i < 300; i++) {
        uint8_t fn[6] = {0xb8, i, 0, 0, 0, 0xc3};
        CHECK(pwrite(fd, fn, 6, 0) == 6 && pread(fd, page, 6, 0) == 6);
        sum += run();
        fn[1]++;
        CHECK(write(p[1], fn, 6) == 6 && readv(p[0], &(struct iovec){page, 6}, 1) == 6);
        sum += run();
    }
    printf("code that was read in: %ld\n", sum);
    void *volatile nowhere = (void *)0x10;
    CHECK(write(p[1], "x", 1) == 1 && read(p[0], nowhere, 1) == -1 && errno == EFAULT);
    return finish();
}

/* The kernel writes into pages with executed code: files, pipes, directories, terminals. */
#include "kw_page.h"
#include <dirent.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <termios.h>

int main(void) {
    int p[2], fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(pipe(p) == 0 && write(fd, "0123456789", 10) == 10);
    KW("read", CHECK(write(p[1], "abc", 3) == 3); CHECK(read(p[0], out, 100) == 3 && !memcmp(out, "abc", 3)););
    KW("pread64", CHECK(pread(fd, out, 100, 2) == 8 && !memcmp(out, "23456789", 8)););
    KW("readv", struct iovec v[2] = {{out, 2}, {out + 100, 50}}; CHECK(write(p[1], "vector", 6) == 6);
       CHECK(readv(p[0], v, 2) == 6 && !memcmp(out, "ve", 2) && !memcmp(out + 100, "ctor", 4)););
    KW("readv, the vector itself there", struct iovec *v = (void *)out; v[0] = (struct iovec){out + 64, 6};
       CHECK(kw_run(k) == k.value);
       CHECK(write(p[1], "inside", 6) == 6 && readv(p[0], v, 1) == 6 && !memcmp(out + 64, "inside", 6)););
    KW("preadv", struct iovec v = {out, 4}; CHECK(preadv(fd, &v, 1, 1) == 4 && !memcmp(out, "1234", 4)););
    KW("preadv2", struct iovec v = {out, 4}; CHECK(preadv2(fd, &v, 1, 5, 0) == 4 && !memcmp(out, "5678", 4)););
    KW("pipe2", CHECK(syscall(SYS_pipe2, out, O_CLOEXEC) == 0); int *q = (int *)out;
       CHECK(q[0] > 2 && q[1] > 2 && !close(q[0]) && !close(q[1])););
    KW("fstat", CHECK(syscall(SYS_fstat, fd, out) == 0 && ((struct stat *)out)->st_size == 10););
    KW("stat", CHECK(syscall(SYS_stat, "file", out) == 0 && ((struct stat *)out)->st_size == 10););
    KW("newfstatat",
       CHECK(syscall(SYS_newfstatat, AT_FDCWD, "file", out, 0) == 0 && ((struct stat *)out)->st_size == 10););
    KW("statx",
       CHECK(syscall(SYS_statx, AT_FDCWD, "file", 0, STATX_SIZE, out) == 0 && ((struct statx *)out)->stx_size == 10););
    KW("statfs", CHECK(syscall(SYS_statfs, ".", out) == 0 && ((struct statfs *)out)->f_bsize > 0););
    KW("getcwd", CHECK(syscall(SYS_getcwd, out, 3000) > 0 && out[0] == '/'););
    CHECK(symlink("target of the link", "link") == 0);
    KW("readlink", CHECK(syscall(SYS_readlink, "link", out, 100) == 18 && !memcmp(out, "target", 6)););
    KW("readlinkat", CHECK(syscall(SYS_readlinkat, AT_FDCWD, "link", out, 6) == 6 && !memcmp(out, "target", 6)););
    int dir = open(".", O_RDONLY | O_DIRECTORY);
    KW("getdents64", CHECK(syscall(SYS_getdents64, dir, out, 1000) > 0 && ((struct dirent64 *)out)->d_reclen > 0););
    lseek(dir, 0, SEEK_SET);
    KW("getdents", CHECK(syscall(SYS_getdents, dir, out, 1000) > 0););
    KW("poll", struct pollfd *f = (void *)out; f[0] = (struct pollfd){p[1], POLLOUT, 0}; CHECK(kw_run(k) == k.value);
       CHECK(poll(f, 1, 1000) == 1 && f[0].revents == POLLOUT););
    KW("ppoll", struct pollfd *f = (void *)out; struct timespec *t = (void *)(out + 512); t->tv_sec = 9;
       f[0] = (struct pollfd){p[1], POLLOUT, 0}; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_ppoll, f, 1, t, NULL, 8) == 1 && f[0].revents == POLLOUT););
    KW("select", fd_set *r = (void *)out; fd_set *w = (void *)(out + 256); struct timeval *t = (void *)(out + 512);
       t->tv_sec = 9; FD_SET(p[0], r); FD_SET(p[1], w); CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_select, p[1] + 1, r, w, NULL, t) == 1 && !FD_ISSET(p[0], r) && FD_ISSET(p[1], w)););
    KW("pselect6", fd_set *w = (void *)out; FD_SET(p[1], w); FD_SET(p[0], w); CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_pselect6, p[1] + 1, NULL, w, NULL, NULL, NULL) == 1 && FD_ISSET(p[1], w)););
    int ep = epoll_create1(0), ev = eventfd(7, 0);
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = 0x1122334455667788};
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e) == 0);
    KW("epoll_wait", CHECK(syscall(SYS_epoll_wait, ep, out, 8, 1000) == 1 &&
                           ((struct epoll_event *)out)->data.u64 == 0x1122334455667788););
    KW("epoll_pwait", CHECK(syscall(SYS_epoll_pwait, ep, out, 8, 1000, NULL, 8) == 1 &&
                            ((struct epoll_event *)out)->events == EPOLLIN););
    KW("eventfd read", CHECK(read(ev, out, 8) == 8 && *(uint64_t *)out == 7););
    CHECK(write(p[1], "12345", 5) == 5);
    KW("ioctl FIONREAD", CHECK(ioctl(p[0], FIONREAD, out) == 0 && *(int *)out == 5););
    char drop[8];
    CHECK(read(p[0], drop, 8) == 5);
    int pt = posix_openpt(O_RDWR | O_NOCTTY);
    if (pt >= 0) {
        KW("ioctl TCGETS", CHECK(syscall(SYS_ioctl, pt, TCGETS, out) == 0 && ((unsigned *)out)[2] != 0););
        KW("ioctl TIOCGWINSZ", CHECK(syscall(SYS_ioctl, pt, TIOCGWINSZ, out) == 0););
        KW("ioctl TIOCGPTN", *(int *)out = -1; CHECK(kw_run(k) == k.value);
           CHECK(syscall(SYS_ioctl, pt, TIOCGPTN, out) == 0 && *(int *)out >= 0););
        close(pt);
    }
    int vsock = open("/dev/vsock", O_RDONLY | O_CLOEXEC); /* whether there is one or not does not show */
    if (vsock >= 0)
        KW("ioctl GET_LOCAL_CID", out[0] = 77; CHECK(kw_run(k) == k.value);
           CHECK(syscall(SYS_ioctl, vsock, 0x7b9, out) == 0 && out[0] != 77););
    else
        puts("ioctl GET_LOCAL_CID: ok");
    KW("ioctl, unknown request", CHECK(syscall(SYS_ioctl, p[0], 0x7a7a7a7a, out) == -1 && errno == ENOTTY););
    KW("fcntl F_GETLK", struct flock *l = (void *)out; l->l_type = F_WRLCK; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_fcntl, fd, F_GETLK, l) == 0 && l->l_type == F_UNLCK););
    KW("fcntl F_GETOWN_EX", out[1] = 77; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_fcntl, p[0], F_GETOWN_EX, out) == 0 && out[1] == 0););
    int in = inotify_init1(0);
    CHECK(inotify_add_watch(in, ".", IN_CREATE) > 0 && close(open("made", O_CREAT | O_WRONLY, 0600)) == 0);
    KW("inotify read", CHECK(read(in, out, 500) > 0 && ((struct inotify_event *)out)->mask == IN_CREATE););
    int null = open("/dev/null", O_WRONLY), back[2];
    CHECK(pipe(back) == 0);
    KW("sendfile", *(off_t *)out = 4; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_sendfile, null, fd, out, 100) == 6 && *(off_t *)out == 10););
    KW("splice", *(loff_t *)out = 3; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_splice, fd, out, back[1], NULL, 4, 0) == 4 && *(loff_t *)out == 7););
    KW("vmsplice", struct iovec v = {out, 50}; CHECK(vmsplice(back[0], &v, 1, 0) == 4 && !memcmp(out, "3456", 4)););
    int to = open("copy", O_RDWR | O_CREAT, 0600);
    KW("copy_file_range", loff_t *off = (void *)out; off[0] = 2; CHECK(kw_run(k) == k.value);
       CHECK(syscall(SYS_copy_file_range, fd, &off[0], to, &off[1], 5, 0) == 5 && off[0] == 7 && off[1] == 5););
    if (fsetxattr(fd, "user.reprise", "value", 5, 0) == 0) {
        KW("fgetxattr", CHECK(fgetxattr(fd, "user.reprise", out, 100) == 5 && !memcmp(out, "value", 5)););
        KW("flistxattr", CHECK(flistxattr(fd, out, 1000) >= 13););
    } else
        puts("fgetxattr: ok\nflistxattr: ok");
    aio_context_t ctx = 0;
    if (syscall(SYS_io_setup, 8, &ctx) == 0) {
        struct kw code = kw_page();
        struct iocb cb = {.aio_fildes = fd,
                          .aio_lio_opcode = IOCB_CMD_PREAD,
                          .aio_buf = (uintptr_t)code.room,
                          .aio_nbytes = 5,
                          .aio_data = 99};
        struct iocb *list[1] = {&cb};
        CHECK(syscall(SYS_io_submit, ctx, 1, list) == 1);
        KW("io_getevents", CHECK(syscall(SYS_io_getevents, ctx, 1, 4, out, NULL) == 1 &&
                                 ((struct io_event *)out)->data == 99 && ((struct io_event *)out)->res == 5););
        CHECK(!memcmp(code.room, "01234", 5) && kw_run(code) == code.value);
        syscall(SYS_io_destroy, ctx);
    } else
        puts("io_getevents: ok");
    KW("a read across two pages with code", uint8_t *two = mmap(NULL, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       memcpy(two, k.page, 6); memcpy(two + 8000, k.page, 6);
       CHECK(((int (*)(void))two)() == k.value && ((int (*)(void))(two + 8000))() == k.value); char big[5000];
       memset(big, 'x', 5000);
       CHECK(write(p[1], big, 5000) == 5000 && read(p[0], two + 1000, 5000) == 5000 && two[5999] == 'x');
       CHECK(((int (*)(void))two)() == k.value && ((int (*)(void))(two + 8000))() == k.value););
    KW("read brings the code", uint8_t fn[6]; memcpy(fn, k.page, 6); k.value = 777; memcpy(fn + 1, &k.value, 4);
       CHECK(write(p[1], fn, 6) == 6 && read(p[0], k.page, 6) == 6););
    return finish();
}

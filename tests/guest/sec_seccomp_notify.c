/* seccomp filters whose calls another process decides about (SECCOMP_RET_USER_NOTIF): it answers them, lets them go on, gives
 * descriptors and writes memory. */
#include "guest.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>

static int seccomp(unsigned op, unsigned flags, void *arg) { return (int)syscall(SYS_seccomp, op, flags, arg); }

#define ASK(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

static int listen_to(unsigned flags) {
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              ASK(SYS_getppid),
                              ASK(SYS_uname),
                              ASK(SYS_mkdir),
                              ASK(SYS_openat2),
                              ASK(SYS_mmap),
                              ASK(SYS_fork),
                              ASK(SYS_clone),
                              ASK(SYS_execve),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    return seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, &p);
}

static void send_fd(int to, int fd) {
    char c = 0, room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    CHECK(sendmsg(to, &m, 0) == 1);
}

static int receive_fd(int from) {
    char c, room[CMSG_SPACE(sizeof(int))];
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int fd = -1;
    if (recvmsg(from, &m, 0) == 1) memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

/* ---- who asks ---- */

static void asks(int up) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int listener = listen_to(0);
    CHECK(listener >= 0 && (fcntl(listener, F_GETFD) & FD_CLOEXEC));
    CHECK(listen_to(0) == -1 && errno == EBUSY);
    CHECK(prctl(PR_GET_SECCOMP) == 2);
    send_fd(up, listener);
    close(listener);
    printf("getppid: %ld\n", syscall(SYS_getppid));
    struct utsname u = {0};
    printf("uname: %d", uname(&u));
    printf(" %s\n", u.sysname);
    printf("mkdir: %d", mkdir("no such/folder", 0700));
    printf(" %d\n", errno == ENOENT);
    int fd = (int)syscall(SYS_openat2, 1, 2, 3, 4); /* answered with a descriptor */
    char text[16] = "";
    CHECK(read(fd, text, 5) == 5);
    printf("openat2: %s\n", text);
    int *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *p = 5;
    printf("mmap: %d\n", *p);
    printf("fork: %ld", syscall(SYS_fork));
    printf(" %d\n", errno == EAGAIN);
    pid_t pid = fork();
    if (pid == 0) execl("/proc/self/exe", "sec_seccomp_notify", "executed", NULL), _exit(1);
    printf("child: %s\n", wait_text(pid));
}

static int executed(void) {
    printf("executed: %ld\n", syscall(SYS_getppid));
    return finish();
}

/* ---- who is asked ---- */

static volatile sig_atomic_t n_alarms;
static void on_alarm(int sig) { n_alarms += sig == SIGALRM; }

static bool answer(int fd, pid_t child) {
    struct seccomp_notif n = {0};
    struct pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, 20000) != 1 || !(p.revents & POLLIN)) return false; /* POLLHUP: nobody is left to ask */
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n)) return errno == ENOENT;
    CHECK(n.data.arch == AUDIT_ARCH_X86_64 && ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id) == 0);
    struct seccomp_notif_resp r = {.id = n.id};
    switch (n.data.nr) {
    case SYS_getppid: r.val = (pid_t)n.pid == child ? 4711 : 42; break;
    case SYS_uname: {
        struct utsname u = {.sysname = "written from outside"};
        struct iovec from = {&u, sizeof u}, to = {(void *)n.data.args[0], sizeof u};
        CHECK(process_vm_writev((pid_t)n.pid, &from, 1, &to, 1, 0) == sizeof u);
        break;
    }
    case SYS_openat2: {
        int ends[2];
        CHECK(n.data.args[0] == 1 && n.data.args[3] == 4 && pipe(ends) == 0 && write(ends[1], "hello", 5) == 5);
        struct seccomp_notif_addfd a = {.id = n.id, .srcfd = (unsigned)ends[0]};
        long got = ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a);
        CHECK(got >= 0);
        r.val = got;
        close(ends[0]), close(ends[1]);
        break;
    }
    case SYS_fork: r.error = -EAGAIN; break;
    default: r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE; /* mkdir, mmap, clone, execve */
    }
    CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0);
    CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r) == -1 && (errno == ENOENT || errno == EINPROGRESS));
    return true;
}

static void other_process(void) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        asks(pair[1]);
        _exit(failures);
    }
    close(pair[1]);
    int listener = receive_fd(pair[0]);
    while (answer(listener, pid)) {}
    printf("%s\n", wait_text(pid));
    close(listener);
    close(pair[0]);
}

/* A thread of the same process is asked; a signal comes before the first answer, and the question is asked again. */
static int handed_over[2];

static void *serve(void *unused) {
    (void)unused;
    int fd;
    CHECK(read(handed_over[0], &fd, sizeof fd) == sizeof fd);
    struct seccomp_notif n = {0}, again = {0};
    CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n) == 0);
    CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &again) == 0);
    CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id) == -1 && errno == ENOENT);
    struct seccomp_notif_resp r = {.id = again.id, .val = n_alarms};
    CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0);
    return NULL;
}

static void same_process(void) {
    pthread_t server;
    sigset_t alarms;
    sigemptyset(&alarms), sigaddset(&alarms, SIGALRM);
    CHECK(pipe(handed_over) == 0);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    pthread_create(&server, NULL, serve, NULL);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &sa, NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int fd = listen_to(0);
    CHECK(fd >= 0 && write(handed_over[1], &fd, sizeof fd) == sizeof fd);
    struct itimerval soon = {{0, 0}, {0, 200000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    printf("a thread says: %ld\n", syscall(SYS_getppid));
    pthread_join(server, NULL);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "executed")) return executed();
    uint32_t action = SECCOMP_RET_USER_NOTIF;
    struct seccomp_notif_sizes sizes = {0};
    if (seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action)) return 77;
    CHECK(seccomp(SECCOMP_GET_NOTIF_SIZES, 0, &sizes) == 0 && sizes.seccomp_notif >= sizeof(struct seccomp_notif));
    other_process();
    same_process();
    return finish();
}

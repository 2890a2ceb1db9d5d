/* signalfd: blocked signals read as records, in order, with sender and value. */
#include "guest.h"
#include <sys/signalfd.h>

int main(void) {
    sigset_t s;
    sigemptyset(&s);
    sigaddset(&s, SIGUSR1), sigaddset(&s, SIGRTMIN), sigaddset(&s, SIGCHLD);
    sigprocmask(SIG_BLOCK, &s, NULL);
    int fd = signalfd(-1, &s, SFD_NONBLOCK | SFD_CLOEXEC);
    struct signalfd_siginfo in[8];
    CHECK(read(fd, in, sizeof in) == -1 && errno == EAGAIN);
    kill(getpid(), SIGUSR1);
    for (int i = 0; i < 3; i++) sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 100 + i});
    struct pollfd p = {fd, POLLIN, 0};
    CHECK(poll(&p, 1, 0) == 1);
    int n = read(fd, in, sizeof in) / sizeof *in;
    for (int i = 0; i < n; i++)
        printf("signal %u value %d from us %d\n", in[i].ssi_signo, in[i].ssi_int, in[i].ssi_pid == (unsigned)getpid());
    pid_t pid = fork();
    if (!pid) _exit(5);
    CHECK(poll(&p, 1, 10000) == 1);
    CHECK(read(fd, in, sizeof in) == sizeof *in);
    printf("child: signal %u, status %d, it is ours %d\n", in->ssi_signo, in->ssi_status, in->ssi_pid == (unsigned)pid);
    wait(NULL);
    return finish();
}

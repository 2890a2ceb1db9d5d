/* Calls that wait under a signal mask of their own: the handler of what ends the wait runs under that mask, its frame holds the
 * old one, and a call that succeeds has put the old one back before any handler runs. */
#include "guest.h"

#include <sys/epoll.h>
#include <sys/select.h>

#define BIT(sig) (1ull << ((sig)-1))

static uint64_t seen_mask, seen_frame;
static volatile int handled;

static uint64_t current_mask(void) {
    uint64_t m = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &m, 8);
    return m;
}

static void on_alarm(int sig, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    seen_mask = current_mask();
    memcpy(&seen_frame, &uc->uc_sigmask, 8);
    handled++;
}

static void alarm_soon(void) {
    struct itimerval t = {.it_value = {.tv_usec = 20000}};
    setitimer(ITIMER_REAL, &t, NULL);
}

static uint64_t wait_set = BIT(SIGCHLD) | BIT(SIGPWR), old_set = BIT(SIGALRM) | BIT(SIGUSR1);

static long by_sigsuspend(void) { return syscall(SYS_rt_sigsuspend, &wait_set, 8); }
static long by_ppoll(void) { return syscall(SYS_ppoll, NULL, 0, NULL, &wait_set, 8); }
static long by_pselect(void) {
    struct {
        uint64_t *mask;
        size_t len;
    } arg = {&wait_set, 8};
    return syscall(SYS_pselect6, 0, NULL, NULL, NULL, NULL, &arg);
}
static long by_epoll(void) {
    struct epoll_event e;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    long ret = syscall(SYS_epoll_pwait, fd, &e, 1, -1, &wait_set, 8);
    int err = errno;
    close(fd);
    errno = err;
    return ret;
}

static void one(const char *name, long (*wait_for_it)(void)) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old_set, NULL, 8);
    seen_mask = seen_frame = 0;
    handled = 0;
    alarm_soon();
    long ret = wait_for_it();
    CHECK(ret == -1 && errno == EINTR);
    CHECK(handled == 1);
    CHECK(seen_mask == (wait_set | BIT(SIGALRM)));
    CHECK(seen_frame == old_set);
    CHECK(current_mask() == old_set);
    printf("%s: done\n", name);
}

/* A signal that the old mask holds stays pending if there is something to read. */
static void success(void) {
    int p[2];
    char byte = 1;
    CHECK(pipe(p) == 0 && write(p[1], &byte, 1) == 1);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old_set, NULL, 8);
    handled = 0;
    struct pollfd f = {.fd = p[0], .events = POLLIN};
    CHECK(syscall(SYS_ppoll, &f, 1, NULL, &wait_set, 8) == 1);
    raise(SIGALRM);
    CHECK(handled == 0);
    CHECK(current_mask() == old_set);
    uint64_t none = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
    CHECK(handled == 1);
    CHECK(seen_mask == BIT(SIGALRM) && seen_frame == 0);
}

/* Two at once: the second one's frame lies on the first one's. */
static void two(void) {
    uint64_t all = BIT(SIGALRM) | BIT(SIGUSR1), none = 0;
    handle(SIGUSR1, on_alarm, 0);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
    raise(SIGALRM);
    raise(SIGUSR1);
    handled = 0;
    CHECK(syscall(SYS_rt_sigsuspend, &none, 8) == -1 && errno == EINTR);
    CHECK(handled == 2);
    CHECK(current_mask() == all);
}

int main(void) {
    handle(SIGALRM, on_alarm, 0);
    one("sigsuspend", by_sigsuspend);
    one("ppoll", by_ppoll);
    one("pselect", by_pselect);
    one("epoll_pwait", by_epoll);
    success();
    two();
    return finish();
}

/* Signals that faults raise, too, sent while they are blocked: no call that waits is interrupted, however often they come, and they
 * are delivered when they are unblocked. */
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>

#include "guest.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGSEGV, SIGTRAP, SIGFPE, SIGILL};
static volatile int got;

static void on_signal(int signo) { got |= 1 << signo; }

static long ms_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A child that sends all of them, 20 ms apart, then writes a byte, and ends. */
static pid_t sender(int fd) {
    pid_t pid = fork();
    if (pid) return pid;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        usleep(20000);
        kill(getppid(), signals[i]);
    }
    usleep(20000);
    _exit(write(fd, "x", 1) != 1);
}

int main(void) {
    int ends[2], status;
    char byte;
    sigset_t set;
    sem_t never;
    struct sigaction sa = {.sa_handler = on_signal};
    struct timespec time = {0, 300000000}, left = {12, 34}, until;
    struct timeval interval = {0, 300000};
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], &sa, NULL);
        sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    CHECK(pipe(ends) == 0 && sem_init(&never, 0, 0) == 0);
    for (int i = 0; i < 7; i++) {
        pid_t pid = sender(ends[1]);
        long begin = ms_now(), least = 300;
        switch (i) {
        case 0: CHECK(nanosleep(&time, &left) == 0 && left.tv_sec == 12 && left.tv_nsec == 34); break;
        case 1: CHECK(poll(NULL, 0, 300) == 0); break;
        case 2: CHECK(select(0, NULL, NULL, NULL, &interval) == 0); break;
        case 3: CHECK(epoll_wait(epoll_create1(0), &(struct epoll_event){0}, 1, 300) == 0); break;
        case 4:
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec++;
            CHECK(sem_timedwait(&never, &until) == -1 && errno == ETIMEDOUT);
            break;
        case 5: least = 100; break;
        case 6: least = 100; CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        }
        CHECK(read(ends[0], &byte, 1) == 1);
        CHECK(ms_now() - begin >= least);
        if (i != 6) CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    CHECK(got == 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) CHECK(got >> signals[i] & 1);
    return finish();
}

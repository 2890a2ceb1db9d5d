/* 2000 threads, few at a time, each hit by signals while it starts, works, waits and ends; then a storm of exec. */
#include "guest.h"

#include <spawn.h>

#define THREADS 2000
#define AT_ONCE 8
#define EXECS 60

static long handled, sum;
static __thread long mine;

static void on_signal(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)si, (void)uc;
    mine++;
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}
static void *work(void *arg) {
    long n = (long)arg, x = 0;
    for (long i = 0; i < 500 + n % 700; i++) x += i ^ n;
    if (n % 3 == 0) usleep(50);
    if (n % 5 == 0) pthread_kill(pthread_self(), SIGUSR1);
    __atomic_add_fetch(&sum, x & 0xff, __ATOMIC_RELAXED);
    return (void *)(mine + 1);
}

int main(void) {
    handle(SIGUSR1, on_signal, SA_RESTART);
    handle(SIGALRM, on_signal, SA_RESTART);
    struct itimerval fast = {{0, 1500}, {0, 1500}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &fast, NULL);
    int joined = 0;
    for (long i = 0; i < THREADS; i += AT_ONCE) {
        pthread_t t[AT_ONCE];
        for (long k = 0; k < AT_ONCE; k++) CHECK(pthread_create(&t[k], NULL, work, (void *)(i + k)) == 0);
        for (long k = 0; k < AT_ONCE; k++)
            if (k % 2) pthread_kill(t[k], SIGUSR1); /* not joined yet: may have ended already */
        for (long k = 0; k < AT_ONCE; k++) {
            void *r;
            joined += pthread_join(t[k], &r) == 0 && (long)r > 0;
        }
    }
    setitimer(ITIMER_REAL, &off, NULL);
    CHECK(handled >= THREADS / 5);
    printf("joined %d, sum %ld\n", joined, sum);
    int fine = 0;
    for (int i = 0; i < EXECS; i++) {
        char *argv[] = {"sh", "-c", "exit $1", "x", i % 2 ? "7" : "9", NULL};
        pid_t pid;
        int status;
        if (i % 3 == 0) {
            if ((pid = fork()) == 0) execv("/bin/sh", argv), _exit(1);
        } else if (i % 3 == 1) {
            if ((pid = vfork()) == 0) execv("/bin/sh", argv), _exit(1);
        } else {
            CHECK(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) == 0);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        fine += WIFEXITED(status) && WEXITSTATUS(status) == (i % 2 ? 7 : 9);
    }
    printf("%d programs executed\n", fine);
    return finish();
}

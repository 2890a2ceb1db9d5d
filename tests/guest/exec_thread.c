/* exec from a thread that is not the first: same process id, other threads gone, handlers reset, ignored kept. */
#include "guest.h"

static char me[4096], pid_text[16];
static void on(int sig) { (void)sig; }
static void *spin(void *arg) {
    for (volatile long i = 0;; i++) {}
    return arg;
}
static void *execs(void *arg) {
    sleep_ms(10);
    execl(me, "after", pid_text, NULL);
    return arg;
}

int main(int argc, char **argv) {
    if (argc == 2) {
        struct sigaction a, b;
        sigset_t now;
        sigaction(SIGUSR1, NULL, &a), sigaction(SIGUSR2, NULL, &b), sigprocmask(SIG_BLOCK, NULL, &now);
        char status[8192];
        slurp("/proc/self/status", status, sizeof status);
        printf("same pid %d, first thread %d, one thread %d\n", atoi(argv[1]) == getpid(), gettid() == getpid(),
               has_text(status, "Threads:\t1\n"));
        printf("handler reset %d, ignored kept %d, mask kept %d\n", a.sa_handler == SIG_DFL, b.sa_handler == SIG_IGN,
               sigismember(&now, SIGTERM));
        stack_t ss;
        sigaltstack(NULL, &ss);
        printf("altstack gone %d\n", ss.ss_flags == SS_DISABLE);
        return 7;
    }
    CHECK(readlink("/proc/self/exe", me, sizeof me - 1) > 0);
    snprintf(pid_text, sizeof pid_text, "%d", getpid());
    signal(SIGUSR1, on), signal(SIGUSR2, SIG_IGN);
    sigset_t s;
    sigemptyset(&s), sigaddset(&s, SIGTERM), sigprocmask(SIG_BLOCK, &s, NULL);
    static char alt[65536];
    stack_t ss = {.ss_sp = alt, .ss_size = sizeof alt};
    sigaltstack(&ss, NULL);
    pthread_t t;
    for (int i = 0; i < 4; i++) pthread_create(&t, NULL, spin, NULL);
    pthread_create(&t, NULL, execs, NULL);
    spin(NULL);
}

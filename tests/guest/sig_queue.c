/* sigqueue: real-time signals queue in order with their values, ordinary ones merge; rt_sigqueueinfo; limits. */
#include "guest.h"

static int seen[64], n;
static void on(int sig, siginfo_t *si, void *uc) {
    (void)sig, (void)uc;
    if (n < 64) seen[n++] = si->si_value.sival_int;
    CHECK(si->si_code == SI_QUEUE && si->si_pid == getpid());
}

int main(void) {
    sigset_t s, old;
    sigfillset(&s);
    handle(SIGRTMIN, on, 0), handle(SIGUSR1, on, 0);
    sigprocmask(SIG_SETMASK, &s, &old);
    for (int i = 0; i < 10; i++) sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
    for (int i = 0; i < 10; i++) sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 1000 + i});
    sigprocmask(SIG_SETMASK, &old, NULL);
    for (int i = 0; i < n; i++) printf("%d ", seen[i]);
    puts("");

    n = 0;
    siginfo_t si = {.si_code = SI_QUEUE, .si_value = {.sival_int = 55}};
    si.si_pid = getpid();
    CHECK(syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN, &si) == 0);
    CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGRTMIN, &si) == 0);
    printf("%d: %d %d\n", n, seen[0], seen[1]);
    si.si_code = SI_USER;
    pid_t pid = fork();
    if (!pid) sleep_ms(10000), _exit(0);
    CHECK(syscall(SYS_rt_sigqueueinfo, pid, SIGRTMIN, &si) == -1 && errno == EPERM);
    kill(pid, SIGKILL), waitpid(pid, NULL, 0);

    /* A signal sent to a process that sends one back, 200 times: none is lost. */
    int sum = 0;
    sigemptyset(&s), sigaddset(&s, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &s, NULL);
    pid_t me = getpid();
    pid = fork();
    if (!pid) {
        for (int i = 0; i < 200; i++) {
            sigwaitinfo(&s, &si);
            sigqueue(me, SIGRTMIN + 1, (union sigval){.sival_int = si.si_value.sival_int * 2});
        }
        _exit(0);
    }
    for (int i = 0; i < 200; i++) {
        sigqueue(pid, SIGRTMIN + 1, (union sigval){.sival_int = i});
        sigwaitinfo(&s, &si);
        sum += si.si_value.sival_int;
    }
    printf("echoed sum %d, %s\n", sum, wait_text(pid));
    return finish();
}

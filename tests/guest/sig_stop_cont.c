/* Stop and continue of a child: SIGSTOP, SIGTSTP by itself, SIGCONT with a handler, and threads that stop together. */
#include "guest.h"

static volatile int conts;
static void on_cont(int sig) { (void)sig, conts++; }
static volatile long *shared;
static void *count(void *i) {
    for (;;) shared[(long)i * 8]++;
    return NULL;
}

int main(void) {
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    int st;
    if (!pid) {
        signal(SIGCONT, on_cont);
        pthread_t t;
        pthread_create(&t, NULL, count, (void *)1);
        for (;;) {
            shared[0]++;
            shared[24] = conts;
        }
    }
    for (int i = 0; i < 5; i++) {
        long before = shared[0], before2 = shared[8];
        while (shared[0] == before || shared[8] == before2) sleep_ms(1); /* it runs */
        kill(pid, SIGSTOP);
        CHECK(waitpid(pid, &st, WUNTRACED) == pid);
        if (!i) puts(status_text(st));
        long a = shared[0], b = shared[8];
        sleep_ms(20);
        CHECK(a == shared[0] && b == shared[8]);
        kill(pid, SIGCONT);
        CHECK(waitpid(pid, &st, WCONTINUED) == pid);
        if (!i) puts(status_text(st));
        while (shared[24] <= i) sleep_ms(1);
    }
    kill(pid, SIGSTOP);
    waitpid(pid, &st, WUNTRACED);
    kill(pid, SIGKILL);
    printf("killed while stopped: %s\n", wait_text(pid));

    pid = fork();
    if (!pid) {
        setpgid(0, 0); /* orphaned groups ignore SIGTSTP, so use SIGSTOP twice */
        raise(SIGSTOP);
        raise(SIGSTOP);
        _exit(6);
    }
    for (int i = 0; i < 2; i++) {
        waitpid(pid, &st, WUNTRACED);
        puts(status_text(st));
        kill(pid, SIGCONT);
    }
    puts(wait_text(pid));
    return finish();
}

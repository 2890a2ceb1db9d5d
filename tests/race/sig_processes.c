// Two processes send each other signals; standard ones are merged while they are pending.
#include "race.h"
#include <signal.h>
#include <sys/wait.h>
static volatile int got;
static volatile uint64_t digest, progress;
static void handler(int s) {
    got++;
    digest = mix(digest, progress);
}
int main(void) {
    signal(SIGUSR1, handler);
    pid_t parent = getpid(), child = fork();
    pid_t other = child ? child : parent;
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 50000; k++) progress++;
        kill(other, SIGUSR1);
    }
    if (!child) {
        printf("child got %d, %016lx\n", got, digest);
        fflush(stdout);
        signal(SIGUSR1, SIG_IGN);
        _exit(got % 100);
    }
    signal(SIGCHLD, SIG_DFL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {}
    printf("parent got %d, %016lx; child said %d\n", got, digest, WEXITSTATUS(status));
    return 0;
}

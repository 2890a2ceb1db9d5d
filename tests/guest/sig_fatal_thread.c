/* A signal that a thread sends to its own process and that nobody handles: the process is gone before kill() returns, though the
 * signal is not blocked anywhere and the thread would wait for it. */
#include "guest.h"

static void *killer(void *arg) {
    struct timespec second = {.tv_sec = 1};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    kill(getpid(), SIGTERM);
    sigtimedwait(&set, NULL, &second);
    printf("still here\n");
    return arg;
}

int main(void) {
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t t;
            pthread_create(&t, NULL, killer, NULL);
            pthread_join(t, NULL);
            _exit(1);
        }
        int status;
        waitpid(child, &status, 0);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
    return finish();
}

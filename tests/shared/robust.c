/* Robust mutexes whose owner exits, or is killed while another process has the page. */
#include <errno.h>

#include "shared.h"

static struct {
    pthread_mutex_t mutex;
    _Atomic int held, value;
} * r;

static void owner(bool exits) {
    pthread_mutex_lock(&r->mutex);
    r->value = 7;
    r->held = 1;
    if (exits) _exit(0);
    for (;;) pause();
}

static void try(bool exits) {
    pthread_mutexattr_t m;
    pthread_mutexattr_init(&m);
    pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&m, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&r->mutex, &m);
    r->held = r->value = 0;
    pid_t pid = fork();
    if (pid == 0) owner(exits);
    while (!r->held) usleep(1000);
    if (!exits) kill(pid, SIGKILL);
    int got = pthread_mutex_lock(&r->mutex);
    printf("%s: %s, value %d\n", exits ? "exit" : "kill", got == EOWNERDEAD ? "owner dead" : "?", r->value);
    pthread_mutex_consistent(&r->mutex);
    pthread_mutex_unlock(&r->mutex);
    waitpid(pid, NULL, 0);
}

int main(void) {
    r = share(sizeof *r);
    try(true);
    try(false);
    return 0;
}

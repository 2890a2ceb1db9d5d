/* For the tests of the timeline: 20 calls that each change a counter, from two threads in turn; a signal; a system call that
 * writes what may be watched. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile int counter;
char buffer[64];
static volatile sig_atomic_t signals;

__attribute__((noinline)) void count(int by) { counter += by; }

static void on_signal(int sig) {
    (void)sig;
    signals++;
}

static void *other(void *arg) {
    (void)arg;
    for (int i = 0; i < 10; i++) count(1);
    return NULL;
}

int main(void) {
    pthread_t t;
    int pipes[2];
    signal(SIGUSR1, on_signal);
    pthread_create(&t, NULL, other, NULL);
    pthread_join(t, NULL);
    raise(SIGUSR1);
    for (int i = 0; i < 10; i++) count(100);
    if (pipe(pipes) != 0 || write(pipes[1], "written", 7) != 7 || read(pipes[0], buffer, sizeof buffer) != 7) return 1;
    char *copy = malloc(3000);
    memset(copy, 'x', 3000);
    printf("%d %d %s %c\n", counter, (int)signals, buffer, copy[2999]);
    free(copy);
    return 7;
}

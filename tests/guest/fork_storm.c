/* fork while other threads make threads, change signal actions, map memory and write code: every child works on. */
#include "guest.h"

#include <spawn.h>

#define CHILDREN 120

static volatile int stop;
static long short_threads, bad;

static void *nothing(void *arg) { return arg; }
static void on_signal(int sig) { (void)sig; }

static void *makes_threads(void *arg) {
    while (!stop) {
        pthread_t t;
        if (pthread_create(&t, NULL, nothing, NULL) == 0) pthread_join(t, NULL), short_threads++;
    }
    return arg;
}
static void *changes_actions(void *arg) {
    while (!stop) {
        signal(SIGUSR1, on_signal);
        pthread_kill(pthread_self(), SIGUSR1);
        signal(SIGUSR1, SIG_IGN);
    }
    return arg;
}
static void *writes_code(void *arg) {
    for (int v = 0; !stop; v++) {
        uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p[0] = 0xb8, memcpy(p + 1, &v, 4), p[5] = 0xc3;
        if (((int (*)(void))p)() != v) bad++;
        munmap(p, 4096);
    }
    return arg;
}

static int work_of_child(int i) {
    uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[0] = 0xb8, memcpy(p + 1, &i, 4), p[5] = 0xc3;
    if (((int (*)(void))p)() != i) return 1;
    signal(SIGUSR2, on_signal);
    raise(SIGUSR2);
    pthread_t t;
    void *r;
    if (pthread_create(&t, NULL, nothing, p) || pthread_join(t, &r) || r != p) return 2;
    if (i % 8 == 0) {
        char *argv[] = {"true", NULL};
        pid_t pid;
        int status;
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ)) return 3;
        if (waitpid(pid, &status, 0) != pid || status) return 4;
    }
    return 40 + i % 8;
}

int main(void) {
    void *(*const what[])(void *) = {makes_threads, changes_actions, writes_code};
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, what[i], NULL);
    int right = 0;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        if (pid == 0) _exit(work_of_child(i));
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 40 + i % 8)
            right++;
        else
            printf("child %d: status %x\n", i, status);
    }
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    CHECK(short_threads > 0);
    printf("%d children right, %ld bad results\n", right, bad);
    return finish();
}

/* A signal that stops (SIGTSTP) and comes while a process is getting a page of shared memory stops it without the page: others
 * can use it. */
#include "guest.h"

#define ROUNDS 20

static volatile int *shared;

static void spin(int n) {
    for (volatile int i = 0; i < n; i++) {}
}

static void reads(void) {
    while (!shared[1]) syscall(SYS_futex, &shared[1], 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
    _exit(7);
}

/* One more stopped child. It reads a page that its grandparent has, and that its parent has not touched so far. */
static int group(int i) {
    int status;
    setpgid(0, 0); /* not orphaned: others would not stop */
    pid_t pid = fork();
    if (pid == 0) reads();
    spin(i % 20 * 1000);
    CHECK(kill(pid, i % 2 ? SIGTSTP : SIGTTIN) == 0);
    CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    shared[1] = 1;
    CHECK(kill(pid, SIGCONT) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return failures;
}

int main(void) {
    int good = 0;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < ROUNDS; i++) {
        int status;
        shared[1] = 0;
        pid_t pid = fork();
        if (pid == 0) _exit(group(i));
        good += waitpid(pid, &status, 0) == pid && status == 0;
    }
    printf("%d of %d rounds\n", good, ROUNDS);
    return finish();
}

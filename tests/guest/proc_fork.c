/* fork: trees, exit codes, WNOHANG, copy-on-write, fork from threads, atfork, orphans. */
#include "guest.h"

static int value = 1;
static char trace[64];
static void note(const char *s) {
    if (strlen(trace) < 60) strcat(trace, s);
}
static void prep(void) { note("p"); }
static void par(void) { note("P"); }
static void kid(void) { note("C"); }

static int tree(int depth) {
    int sum = 1;
    if (depth)
        for (int i = 0; i < 2; i++) {
            pid_t pid = fork();
            if (!pid) _exit(tree(depth - 1));
            int st;
            waitpid(pid, &st, 0);
            sum += WEXITSTATUS(st);
        }
    return sum;
}
static void *forks(void *arg) {
    long ok = 0;
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (!pid) _exit(gettid() == getpid() ? 4 : 5);
        ok += strcmp("exit 4", wait_text(pid)) == 0;
    }
    (void)arg;
    return (void *)ok;
}
static volatile int stop;
static void *noise(void *arg) {
    while (!stop) free(malloc(100));
    return arg;
}

int main(void) {
    printf("tree of %d\n", tree(4));
    pid_t pid = fork();
    if (!pid) value = 2, _exit(value);
    printf("child %s, parent's value %d\n", wait_text(pid), value);

    int gate[2];
    CHECK(pipe(gate) == 0);
    pid = fork();
    if (!pid) {
        char c;
        close(gate[1]);
        (void)!read(gate[0], &c, 1);
        _exit(300 & 0xff);
    }
    CHECK(waitpid(pid, NULL, WNOHANG) == 0);
    close(gate[1]), close(gate[0]);
    printf("%s\n", wait_text(pid));
    CHECK(waitpid(pid, NULL, 0) == -1 && errno == ECHILD);
    CHECK(wait(NULL) == -1 && errno == ECHILD);

    pthread_t t, n;
    void *r;
    pthread_create(&n, NULL, noise, NULL);
    pthread_create(&t, NULL, forks, NULL), pthread_join(t, &r);
    stop = 1, pthread_join(n, NULL);
    printf("forked from a thread: %ld\n", (long)r);

    pthread_atfork(prep, par, kid);
    pid = fork();
    if (!pid) {
        printf("in the child: %s\n", trace);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    printf("in the parent: %s\n", trace);

    CHECK(pipe(gate) == 0);
    pid = fork();
    if (!pid) { /* a grandchild outlives its parent and still reports */
        if (!fork()) {
            sleep_ms(20);
            (void)!write(gate[1], "orphan", 6);
            _exit(0);
        }
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    char word[8] = "";
    CHECK(read(gate[0], word, 6) == 6);
    puts(word);
    for (int i = 0; i < 300; i++) {
        pid = fork();
        if (!pid) _exit(i & 127);
        int st;
        CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == (i & 127));
    }
    return finish();
}

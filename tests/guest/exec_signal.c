/* Signals that come while a process executes another program, or wait for it blocked, are not lost. */
#include "guest.h"

#define TRIES 150
#define ARGS 3000 /* so that exec takes a while */

/* Blocked, sent, and still there behind exec: of a kind that comes from faults, too, and an ordinary one. */
static void wait_through_exec(const char *self) {
    pid_t pid = fork();
    if (!pid) {
        sigset_t set;
        sigemptyset(&set), sigaddset(&set, SIGSEGV), sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, NULL);
        kill(getpid(), SIGSEGV), kill(getpid(), SIGUSR1);
        execl(self, self, "pending", NULL);
        _exit(1);
    }
    puts(wait_text(pid));
}
static void say_pending(void) {
    sigset_t set;
    CHECK(sigpending(&set) == 0);
    printf("pending: SEGV %d USR1 %d TERM %d\n", sigismember(&set, SIGSEGV), sigismember(&set, SIGUSR1),
           sigismember(&set, SIGTERM));
    fflush(stdout);
    sigfillset(&set);
    sigdelset(&set, SIGUSR1);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

static pid_t executing(const char *self, char **args) {
    int p[2];
    char c;
    CHECK(pipe(p) == 0);
    pid_t pid = fork();
    if (!pid) {
        args[0] = (char *)self;
        (void)!write(p[1], "x", 1);
        execv(self, args);
        _exit(1);
    }
    CHECK(read(p[0], &c, 1) == 1);
    close(p[0]), close(p[1]);
    return pid;
}

int main(int argc, char **argv) {
    static char *args[ARGS + 2];
    if (argc == 2 && !strcmp(argv[1], "pending")) {
        say_pending();
        return 1;
    }
    if (argc > 2) {
        alarm(20);
        for (;;) pause();
    }
    wait_through_exec(argv[0]);
    for (int i = 1; i <= ARGS; i++) args[i] = "an argument that is only here to be copied";
    int died = 0;
    for (int i = 0; i < TRIES; i++) {
        pid_t pid = executing(argv[0], args);
        for (volatile int spin = 0; spin < i * 4000; spin++) {}
        int status;
        CHECK(kill(pid, SIGTERM) == 0 && waitpid(pid, &status, 0) == pid);
        died += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
    }
    printf("died of the signal: %d\n", died);
    return finish();
}

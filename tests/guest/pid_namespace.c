/* Processes in a PID namespace of their own, with numbers that nobody has outside, and which live for a while. */
#include "guest.h"
#include <sched.h>

static int free_outside(void) {
    for (int pid = 20000; pid < 32000; pid++)
        if (kill(pid, 0) && errno == ESRCH) return pid;
    return 0;
}

/* So that the next process here gets the number; some systems do not allow it. */
static bool choose_next(int pid) {
    char text[16];
    int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY), n = snprintf(text, sizeof text, "%d", pid - 1);
    bool done = fd >= 0 && write(fd, text, (size_t)n) == n;
    if (fd >= 0) close(fd);
    return done;
}

static void live(const char *who) {
    for (int i = 0; i < 8; i++) {
        printf("%s: %d\n", who, i);
        sleep_ms(50);
    }
}

/* The first one; it also leaves somebody behind, whom its end kills. */
static int first(int number) {
    CHECK(getpid() == 1);
    int done[2];
    char byte;
    CHECK(pipe(done) == 0);
    if (!choose_next(number)) return 77;
    pid_t pid = fork();
    if (!pid) {
        CHECK(getpid() == number);
        live("child");
        if (fork()) _exit(failures);
        live("grandchild");
        CHECK(write(done[1], "", 1) == 1);
        pause();
    }
    CHECK(!strcmp("exit 0", wait_text(pid)));
    CHECK(read(done[0], &byte, 1) == 1);
    return failures;
}

int main(void) {
    int number = free_outside();
    if (!number || (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))) return 77;
    pid_t pid = fork();
    if (!pid) _exit(first(number));
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return 77;
    printf("the first process: %s\n", status_text(status));
    return finish();
}

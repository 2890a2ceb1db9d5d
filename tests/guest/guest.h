/* Shared by the guest programs: includes, a check that names itself, and small shorthands.
 * A guest program prints no addresses, ids or times, so that its native and translated output can be compared
 * byte by byte. stdout is unbuffered: nothing is printed twice after fork, nothing is lost when a child is killed. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static int failures;

static inline void check_failed(const char *file, int line, const char *what) {
    const char *slash = strrchr(file, '/');
    printf("FAIL %s:%d: %s\n", slash ? slash + 1 : file, line, what);
    failures++;
}
#define CHECK(e) ((e) ? (void)0 : check_failed(__FILE__, __LINE__, #e))

/* What the caller left ignored or blocked (nohup, a shell's background jobs) must not show in the output. Programs that
 * execute themselves do so with arguments, and are left as they are. */
__attribute__((constructor)) static void guest_start(int argc) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 1) return;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int sig = 1; sig < 32; sig++) signal(sig, SIG_DFL);
}

/* The value main returns. */
static inline int finish(void) {
    printf(failures ? "%d checks failed\n" : "all checks passed\n", failures);
    return failures != 0;
}

#ifndef __cplusplus
typedef void siginfo_handler(int, siginfo_t *, void *);

static inline void handle(int sig, siginfo_handler *h, int flags) {
    struct sigaction sa = {.sa_sigaction = h, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&sa.sa_mask);
    if (sigaction(sig, &sa, NULL)) perror("sigaction"), exit(2);
}
#endif

static inline long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline void sleep_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) && errno == EINTR) {}
}

/* "exit 3", "signal 11" (with "+core" left out: it depends on limits). */
static inline const char *status_text(int status) {
    static char text[64];
    if (WIFEXITED(status))
        snprintf(text, sizeof text, "exit %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "signal %d", WTERMSIG(status));
    else if (WIFSTOPPED(status))
        snprintf(text, sizeof text, "stopped by %d", WSTOPSIG(status));
    else if (WIFCONTINUED(status))
        snprintf(text, sizeof text, "continued");
    else
        snprintf(text, sizeof text, "status %#x", status);
    return text;
}

static inline const char *wait_text(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) return "waitpid failed";
    return status_text(status);
}

/* A child's /proc state letter: lets a test wait until another process or thread really sleeps. */
static inline char task_state(pid_t pid, pid_t tid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    char *got = fgets(line, sizeof line, f);
    fclose(f);
    char *p = got ? strrchr(line, ')') : NULL;
    return p ? p[2] : 0;
}

static inline void wait_asleep(pid_t pid, pid_t tid) {
    sleep_ms(20); /* let it get into the call that is meant */
    for (int i = 0; i < 2000 && task_state(pid, tid) != 'S'; i++) sleep_ms(5);
}

static inline bool has_text(const char *hay, const char *needle) { return strstr(hay, needle) != NULL; }

/* Reads a whole (small) file; NUL-terminated. */
static inline ssize_t slurp(const char *path, char *buf, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    size_t n = 0;
    ssize_t r;
    while (n < size - 1 && (r = read(fd, buf + n, size - 1 - n)) > 0) n += r;
    close(fd);
    buf[n] = 0;
    return n;
}

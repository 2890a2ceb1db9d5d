/* A failed exec returns with the right error and leaves everything as it was: handlers, mask, threads, close-on-exec. */
#include "guest.h"

static volatile int handled;
static void on(int sig) { (void)sig, handled++; }
static volatile int stop, counter;
static void *count(void *arg) {
    while (!stop) counter++;
    return arg;
}
static char *const argv[] = {"x", NULL};

static void try(const char *name, const char *path) {
    int r = execve(path, argv, argv + 1);
    printf("%s: %d %s\n", name, r, strerror(errno));
}
static void put(const char *name, const void *bytes, size_t n, int mode) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    CHECK(write(fd, bytes, n) == (ssize_t)n);
    fchmod(fd, mode), close(fd);
}

int main(void) {
    signal(SIGUSR1, on);
    sigset_t s;
    sigemptyset(&s), sigaddset(&s, SIGUSR2), sigprocmask(SIG_BLOCK, &s, NULL);
    int cloexec = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pthread_t t;
    pthread_create(&t, NULL, count, NULL);

    try("missing", "/nonexistent/program");
    try("empty path", "");
    try("through a file", "/etc/passwd/x");
    try("directory", "/tmp");
    put("plain", "text", 4, 0644), try("not executable", "./plain");
    put("plain", "text", 4, 0755), try("not a program", "./plain");
    static char elf[4096];
    int self = open("/proc/self/exe", O_RDONLY);
    CHECK(read(self, elf, sizeof elf) == sizeof elf);
    put("plain", elf, 32, 0755), try("truncated header", "./plain");
    put("plain", elf, 64, 0755), try("no program headers", "./plain");
    elf[18] = 0xb7; /* aarch64 */
    put("plain", elf, sizeof elf, 0755), try("foreign machine", "./plain");
    elf[18] = 0x3e, elf[16] = 1; /* relocatable */
    put("plain", elf, sizeof elf, 0755), try("object file", "./plain");
    unlink("plain");
    try("long name", memset(calloc(1, 5000), 'a', 4999));
    try("bad pointer", (char *)8);
    CHECK(symlink("loop2", "loop1") == 0 && symlink("loop1", "loop2") == 0);
    try("link loop", "./loop1");
    unlink("loop1"), unlink("loop2");
    int w = open("busy", O_WRONLY | O_CREAT, 0755);
    CHECK(write(w, "#!/bin/sh\n", 10) == 10);
    try("open for writing", "./busy");
    close(w), unlink("busy");
    CHECK(syscall(SYS_execve, "/bin/true", 8, NULL) == -1 && errno == EFAULT);
    static char *huge[3];
    huge[0] = "true", huge[1] = memset(malloc(200000), 'x', 199999), huge[1][199999] = 0;
    CHECK(execve("/bin/true", huge, NULL) == -1 && errno == E2BIG);

    raise(SIGUSR1);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    printf("handler still works %d, mask kept %d, descriptor open %d\n", handled, sigismember(&now, SIGUSR2),
           fcntl(cloexec, F_GETFD) == FD_CLOEXEC);
    int before = counter;
    while (counter == before) sched_yield();
    stop = 1, pthread_join(t, NULL);
    return finish();
}
